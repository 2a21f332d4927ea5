package events

// MaxPTYSize is the most rows, and the most columns, of a terminal.
const MaxPTYSize = 4096

// MaxTyped is the most input in one [TTYFrame], in bytes.
const MaxTyped = 64 << 10

// TTYFrame is what a principal sends to a terminal, on [TTYSubject], as plain JSON: it is
// typed, not recorded. The executor takes it if AccessEpoch is the target's, and drops it
// otherwise. Frames of one connection are taken in order.
type TTYFrame struct {
	AccessEpoch uint64 `json:"access_epoch"`
	// Data is typed, at most [MaxTyped] bytes.
	Data []byte `json:"data,omitempty"`
	// Resize is applied before Data is typed.
	Resize *PTYSize `json:"resize,omitempty"`
}
