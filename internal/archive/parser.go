package archive

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// LineError says what is wrong with a file, and at which line.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LineError) Unwrap() error { return e.Err }

// Faults of a file.
var (
	// ErrTruncated means that a file ends before its end line.
	ErrTruncated = errors.New("the file ends early")
	// ErrChain means that a line is not the one that was written there.
	ErrChain = errors.New("the line does not fit its chain: it, or one before it, was changed")
	// ErrForm means that a line is not as a [Writer] writes it.
	ErrForm = errors.New("not a line of an export")
	// ErrOrder means that a line stands where none of its kind can be.
	ErrOrder = errors.New("the line is out of order")
	// ErrVersion means that a newer version wrote the file.
	ErrVersion = errors.New("the file is of a newer version")
)

// Item is what a line says; one of its fields is set, or none for header and end.
type Item struct {
	Message *Message // an event or what is none
	Chunk   *Chunk
}

// Message is a message of the record as the log has it.
type Message struct {
	Place
	Header nats.Header
	Data   []byte
	// Broken is true for what cannot be decoded.
	Broken bool
}

// Parser takes a file line by line. Make it with new; it is not safe for concurrent use.
// After its first error it takes nothing more.
type Parser struct {
	header  Header
	lines   int
	state   int // index of kind in stages
	chain   Hash
	content Hash
	events  int
	chunks  int
	last    Place
	chunk   Chunk // the last one, without data
	failed  error
}

// stages is the order of the kinds of lines.
var stages = map[string]int{kindHeader: 1, kindEvent: 2, kindRaw: 2, kindChunk: 3, kindEnd: 4}

// Header returns what the first line said; zero before it was taken.
func (p *Parser) Header() Header { return p.header }

// Lines returns how many lines were taken.
func (p *Parser) Lines() int { return p.lines }

// Done returns nil once the end line was taken, else *[LineError] with [ErrTruncated].
func (p *Parser) Done() error {
	if p.failed == nil && p.state != stages[kindEnd] {
		return &LineError{p.lines + 1, ErrTruncated}
	}
	return p.failed
}

// Line takes the next line, without its line feed. Errors are *[LineError].
func (p *Parser) Line(line []byte) (Item, error) {
	if p.failed != nil {
		return Item{}, p.failed
	}
	p.lines++
	item, err := p.take(line)
	if err != nil {
		p.failed = &LineError{p.lines, err}
	}
	return item, p.failed
}

func (p *Parser) take(line []byte) (Item, error) {
	chain, kind, body, err := cut(line)
	if err != nil {
		return Item{}, err
	}
	if p.chain = p.chain.next(kind, body); p.chain != chain {
		return Item{}, ErrChain
	}
	if err := p.stage(kind); err != nil {
		return Item{}, err
	}
	switch kind {
	case kindHeader:
		return Item{}, p.takeHeader(body)
	case kindEnd:
		return Item{}, p.takeEnd(body)
	}
	p.content = p.content.next(kind, body)
	switch kind {
	case kindEvent:
		return p.takeEvent(body)
	case kindRaw:
		return p.takeRaw(body)
	}
	return p.takeChunk(body)
}

// stage checks the order of kinds: one header, messages, chunks, one end.
func (p *Parser) stage(kind string) error {
	next := stages[kind]
	switch {
	case p.state == 0 && kind != kindHeader, next < p.state, next == p.state && (kind == kindHeader || kind == kindEnd):
		return fmt.Errorf("%w: %s", ErrOrder, kind)
	}
	p.state = next
	return nil
}

const (
	chainPrefix = `{"chain":"`
	chainEnd    = len(chainPrefix) + 2*len(Hash{})
)

// cut takes a line apart.
func cut(line []byte) (chain Hash, kind string, body []byte, err error) {
	if len(line) > MaxLine {
		return chain, "", nil, fmt.Errorf("%w: it has %d bytes, at most %d are taken", ErrForm, len(line), MaxLine)
	}
	if len(line) < chainEnd || !bytes.HasPrefix(line, []byte(chainPrefix)) {
		return chain, "", nil, ErrForm
	}
	if err := chain.UnmarshalText(line[len(chainPrefix):chainEnd]); err != nil {
		return chain, "", nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	rest, ok := bytes.CutPrefix(line[chainEnd:], []byte(`","`))
	name, rest, found := bytes.Cut(rest, []byte(`":`))
	body, closed := bytes.CutSuffix(rest, []byte("}"))
	kind = string(name)
	if _, known := stages[kind]; !ok || !found || !closed || !known {
		return chain, "", nil, ErrForm
	}
	return chain, kind, body, canonical(chain, kind, line, body)
}

// canonical refuses a line that is written in another way, such as with a hash in capitals.
func canonical(chain Hash, kind string, line, body []byte) error {
	want := appendLine(make([]byte, 0, len(line)+1), chain, kind, body)
	if !bytes.Equal(want[:len(want)-1], line) {
		return ErrForm
	}
	return nil
}

// before refuses what is not behind the message before it.
func (p *Parser) before(at Place) error {
	if at.Sequence <= p.last.Sequence || at.Ordinal <= p.last.Ordinal {
		return fmt.Errorf("%w: ordinal %s at sequence %s after ordinal %s at sequence %s",
			ErrOrder, at.Ordinal, at.Sequence, p.last.Ordinal, p.last.Sequence)
	}
	if p.events == 0 && at != p.header.First {
		return fmt.Errorf("%w: the header says that ordinal %s at sequence %s is first", ErrOrder, p.header.First.Ordinal, p.header.First.Sequence)
	}
	p.last = at
	p.events++
	return nil
}

func (p *Parser) takeEvent(body []byte) (Item, error) {
	e, err := events.UnmarshalStructured(body)
	if err != nil {
		return Item{}, fmt.Errorf("%w: %w", ErrForm, err)
	}
	m, err := p.message(e, body)
	if err != nil {
		return Item{}, err
	}
	return Item{Message: m}, p.before(m.Place)
}

// message returns the form that the log has of an event, if it gives the same line again.
func (p *Parser) message(e events.Event, body []byte) (*Message, error) {
	seq, err := sequenceOf(e)
	if err != nil {
		return nil, err
	}
	e.SetExtension(events.ExtSequence, nil) // it is the reader's, not the event's
	header, data, err := events.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	stored, err := events.Decode(header, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	rec, err := events.RecordOf(p.header.Profile, p.header.Session.Scope(), seq, stored)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if stored.Subject() != string(p.header.Session) {
		return nil, fmt.Errorf("%w: the event is of %q, the file of session %s", ErrForm, stored.Subject(), p.header.Session)
	}
	again, err := event(*rec.Event)
	if err != nil || !bytes.Equal(again, body) {
		return nil, fmt.Errorf("%w: the event is not written as an export writes it", ErrForm)
	}
	return &Message{Place: Place{seq, rec.Ordinal}, Header: header, Data: data}, nil
}
