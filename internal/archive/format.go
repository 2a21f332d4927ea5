package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"keryx/events"
)

// Version is that of the format. A reader refuses a newer one.
const Version = 1

// format is the name of the format in the header.
const format = "keryx-session"

// MaxLine bounds a line: an event of 1 MiB with 32 KiB of attributes in base64 and
// escapes has room.
const MaxLine = 4 << 20

// Kinds of lines.
const (
	kindHeader = "header"
	kindEvent  = "event"
	kindRaw    = "raw"
	kindChunk  = "chunk"
	kindEnd    = "end"
)

// Header says what is in a file.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Profile and Session are those of the bus that the record comes from.
	Profile    events.Profile   `json:"profile"`
	Session    events.SessionID `json:"session"`
	ExportedAt time.Time        `json:"exported_at"`
	// Software is what wrote the file.
	Software string `json:"software"`
	// Schemas is the hash of the set of schemas that the writer knew.
	Schemas string `json:"schemas"`
	// Events counts lines of events, those that cannot be decoded included; Chunks those
	// of output.
	Events int `json:"events"`
	Chunks int `json:"chunks"`
	// First and Last are the first and last event.
	First Place `json:"first"`
	Last  Place `json:"last"`
	// Redaction says what was taken out.
	Redaction events.Redaction `json:"redaction"`
	// Content is the hash of all lines but header and end.
	Content Hash `json:"content"`
}

// Place is where an event stands in the record that it comes from.
type Place struct {
	Sequence events.Sequence `json:"sequence"`
	Ordinal  events.Ordinal  `json:"ordinal"`
}

// Raw is a message of the record that is no event that could be decoded.
type Raw struct {
	Place
	Header map[string][]string `json:"header"`
	Data   []byte              `json:"data"`
}

// Chunk is a kept piece of an exec's output.
type Chunk struct {
	Exec   events.ExecID `json:"exec"`
	Number uint64        `json:"number"`
	Stream string        `json:"stream"`
	Offset int64         `json:"offset"`
	// TimeUS is when its first byte was read, in microseconds of the Unix epoch; 0 when
	// nobody said.
	TimeUS int64  `json:"time_us,omitempty"`
	Data   []byte `json:"data"`
}

// end closes a file.
type end struct {
	Events  int  `json:"events"`
	Chunks  int  `json:"chunks"`
	Content Hash `json:"content"`
}

// Hash is a SHA-256; as text in lower-case hexadecimal digits.
type Hash [sha256.Size]byte

// String returns the hash as text.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(h) {
		return fmt.Errorf("a hash has %d digits, not %d", hex.EncodedLen(len(h)), len(b))
	}
	if _, err := hex.Decode(h[:], b); err != nil {
		return fmt.Errorf("a hash has hexadecimal digits: %w", err)
	}
	return nil
}

// next continues a chain with a line.
func (h Hash) next(kind string, body []byte) Hash {
	sum := sha256.New()
	sum.Write(h[:])
	sum.Write([]byte(kind + "\n"))
	sum.Write(body)
	return Hash(sum.Sum(nil))
}

// appendLine appends a line of a file.
func appendLine(b []byte, chain Hash, kind string, body []byte) []byte {
	b = append(b, `{"chain":"`...)
	b = append(b, chain.String()...)
	b = append(b, `","`...)
	b = append(b, kind...)
	b = append(b, `":`...)
	b = append(b, body...)
	return append(b, "}\n"...)
}

// event returns the one form of an event in a file: on one line.
func event(e events.Event) ([]byte, error) {
	e.DataBase64 = false
	b, err := events.MarshalStructured(e)
	if err != nil {
		return nil, err
	}
	for _, c := range b {
		if c == '\n' || c == '\r' { // only the payload can hold one
			e.DataBase64 = true
			return events.MarshalStructured(e)
		}
	}
	return b, nil
}
