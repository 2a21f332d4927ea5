package schemacheck

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"keryx/events"
	"keryx/schemas"
)

// Limits of the input.
const (
	// MaxLine is the longest line of JSON lines, 16 MiB: four times what the bus carries.
	MaxLine = 4 * events.MaxPayload
	// MaxDocument is the longest input that is not JSON lines, 64 MiB: it is held whole.
	MaxDocument = 64 << 20
)

// ErrTooLong says that a line or document is longer than the limits.
var ErrTooLong = errors.New("too long")

// ErrEmpty says that there is nothing in the input.
var ErrEmpty = errors.New("there is nothing to check")

// Fault is what is wrong with one value.
type Fault struct {
	// Line is where the value begins, from 1.
	Line int `json:"line"`
	// Entry is its place in a list, from 1; 0 outside of lists.
	Entry int    `json:"entry,omitempty"`
	ID    string `json:"id,omitempty"`
	Type  string `json:"type,omitempty"`
	// Path is a JSON pointer, or the name of an attribute; empty is the whole value.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// Checker looks at input. Report is needed; it is called for each fault, in order.
type Checker struct {
	// Type, if set, is the schema of bare data; without one the values are CloudEvents.
	Type   string
	Report func(Fault)
	// Checked and Faulty count the values.
	Checked, Faulty int
}

// Check reads r to its end. It returns an error only if it could not look at everything:
// one wrapping [ErrEmpty] or [ErrTooLong], schemas.ErrUnknownType for a Type that is none,
// or that of r.
func (c *Checker) Check(r io.Reader) error {
	if c.Type != "" {
		if err := schemas.Validate(c.Type, []byte("null")); errors.Is(err, schemas.ErrUnknownType) {
			return err
		}
	}
	before := c.Checked
	buffered := bufio.NewReaderSize(r, 64<<10)
	first, err := readLine(buffered)
	for line := 1; ; line++ {
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("line %d: %w", line, err)
		case len(bytes.TrimSpace(first)) > 0:
			err := c.rest(line, first, buffered)
			if err == nil && c.Checked == before {
				err = ErrEmpty
			}
			return err
		case err != nil:
			return ErrEmpty
		}
		first, err = readLine(buffered)
	}
}

// rest goes on as JSON lines if the first line is a value of its own.
func (c *Checker) rest(line int, first []byte, r *bufio.Reader) error {
	if json.Valid(first) {
		return c.lines(line, first, r)
	}
	all, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return err
	}
	if len(all) > MaxDocument {
		return fmt.Errorf("the document at line %d has more than %d MiB: %w", line, MaxDocument>>20, ErrTooLong)
	}
	c.document(line, append(first, all...))
	return nil
}

func (c *Checker) lines(line int, text []byte, r *bufio.Reader) error {
	for {
		if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 {
			c.document(line, trimmed)
		}
		var err error
		line++
		if text, err = readLine(r); err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// readLine returns a line with its end, if it has one; with io.EOF the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return nil, fmt.Errorf("more than %d MiB: %w", MaxLine>>20, ErrTooLong)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// document checks the values in text, which begins at a line.
func (c *Checker) document(line int, text []byte) {
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			at := line + newlines(text, faultOffset(err, len(text)))
			c.Checked++
			c.fault(Fault{Line: at, Message: "not JSON: " + err.Error()})
			return
		}
		c.value(line+newlines(text, int(dec.InputOffset())-len(raw)), raw)
	}
}

// faultOffset is where a decoder found the fault.
func faultOffset(err error, end int) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return min(max(int(syntax.Offset)-1, 0), end)
	}
	return end // it ends within a value
}

func newlines(text []byte, before int) int { return bytes.Count(text[:before], []byte("\n")) }

// value checks one value, or each entry of a list.
func (c *Checker) value(line int, raw json.RawMessage) {
	var list []json.RawMessage
	if c.Type != "" || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		c.one(line, 0, raw)
		return
	}
	if len(list) == 0 {
		return
	}
	at := 0
	for i, entry := range list {
		at += bytes.Index(raw[at:], entry)
		c.one(line+newlines(raw, at), i+1, entry)
		at += len(entry)
	}
}

func (c *Checker) one(line, entry int, raw json.RawMessage) {
	c.Checked++
	f := check(c.Type, raw)
	if f == nil {
		return
	}
	f.Line, f.Entry = line, entry
	c.fault(*f)
}

func (c *Checker) fault(f Fault) {
	c.Faulty++
	c.Report(f)
}
