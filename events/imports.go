package events

import "time"

// SessionImported makes the record of a session readable that was exported elsewhere
// (scope _profile). It is read-only, and under a scope of its own: import-<session>.
type SessionImported struct {
	Session SessionID `json:"session"`
	Import  ImportID  `json:"import"`
	// FromProfile is the profile that it was exported from.
	FromProfile Profile   `json:"from_profile"`
	ExportedAt  time.Time `json:"exported_at"` // by the clock of who exported it
	// Content is the SHA-256 chain of its events and output.
	Content string `json:"content"`
	// Schemas is the hash of the set of schemas of the bus that exported it.
	Schemas string `json:"schemas"`
	// Redaction says what was taken out at the export.
	Redaction Redaction `json:"redaction"`
	Events    int       `json:"events"` // how many there are
	Chunks    int       `json:"chunks"` // pieces of output
	// The first and last event, as in the record that they come from.
	FirstSequence Sequence `json:"first_sequence"`
	FirstOrdinal  Ordinal  `json:"first_ordinal"`
	LastSequence  Sequence `json:"last_sequence"`
	LastOrdinal   Ordinal  `json:"last_ordinal"`
	// Where events and output are in the stream of imports; 0 when there is no output.
	EventsFrom Sequence `json:"events_from"`
	EventsTo   Sequence `json:"events_to"`
	OutputFrom Sequence `json:"output_from,omitempty"`
	OutputTo   Sequence `json:"output_to,omitempty"`
}

// Redaction says what is taken out of a record before it is shown or exported.
type Redaction string

// What is taken out of a record.
const (
	RedactNone   Redaction = "none"   // nothing
	RedactRules  Redaction = "rules"  // registered secrets, and values whose name says that they are secret
	RedactStrict Redaction = "strict" // all but what is on a list of what may stay
)

// BeginImport announces the record of a session in the export format. An import of the
// same session that has not ended is given up. Answer: [ImportState].
type BeginImport struct {
	Session SessionID `json:"session"`
	// Content is the SHA-256 chain that the file's header gives.
	Content string `json:"content"`
}

// PutImport brings the next piece of the file. Answer: [ImportState].
type PutImport struct {
	Import ImportID `json:"import"`
	// Offset of the piece in the file. A piece that was taken before is answered again.
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"` // at most 512 KiB
}

// ImportState answers [BeginImport] and [PutImport].
type ImportState struct {
	Import ImportID `json:"import,omitempty"`
	// Offset is where the next piece begins.
	Offset int64 `json:"offset"`
	// Done is set when this very record was imported before: nothing is to be sent.
	Done *SessionImported `json:"done,omitempty"`
}

// EndImport makes an import visible, if all of the file has come. Answer:
// [SessionImported].
type EndImport struct {
	Import ImportID `json:"import"`
}

// ImportList asks for the imported sessions. Answer: [Imports].
type ImportList struct {
	// After is the last session of the page before; pages are in id order.
	After SessionID `json:"after,omitempty"`
}

// Imports is a page of imported sessions.
type Imports struct {
	Imports []SessionImported `json:"imports"`
	More    bool              `json:"more"`
}

// MaxImportPiece is the largest piece of a file in a [PutImport]: base64 and the rest of
// the command fit into MaxData.
const MaxImportPiece = 512 << 10
