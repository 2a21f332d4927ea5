package events

// MaxPTYSize is the most rows, and the most columns, of a terminal.
const MaxPTYSize = 4096

// MaxTyped is the most input in one [TTYFrame], in bytes.
const MaxTyped = 64 << 10

// TTYFrame is what a principal sends to a terminal, on [TTYSubject], as plain JSON: it is
// typed, not recorded. The executor takes it if AccessEpoch is the target's and nobody else
// has control, and drops it otherwise. Frames of one connection are taken in order.
type TTYFrame struct {
	AccessEpoch uint64 `json:"access_epoch"`
	// Data is typed, at most [MaxTyped] bytes.
	Data []byte `json:"data,omitempty"`
	// Resize is applied before Data is typed.
	Resize *PTYSize `json:"resize,omitempty"`
	// Answer asks for a [TTYAnswer] that carries it: whatever tells the sender which frame
	// it was, at most [MaxTTYAnswer] bytes. Empty: none is sent.
	Answer string `json:"answer,omitempty"`
}

// MaxTTYAnswer is the longest [TTYFrame.Answer], in bytes.
const MaxTTYAnswer = 64

// TTYAnswer says what became of a [TTYFrame], on [TypedSubject], as plain JSON. It is sent
// once the terminal has taken the frame's data, or will not take it; it is not stored, and
// one may be lost with a connection.
type TTYAnswer struct {
	Answer string `json:"answer"`
	// Taken is how many bytes of the data the terminal took.
	Taken int `json:"taken"`
	// Left is how many it did not take.
	Left int `json:"left,omitempty"`
	// Error says why not all was taken; its code is stale_selection if another has control
	// of the target, lease_lost if the executor does not hold the target, already_ended if
	// there is no terminal any more, invalid if the frame is, too_large if a line is longer
	// than a terminal takes or too much waits to be read.
	Error *Error `json:"error,omitempty"`
}
