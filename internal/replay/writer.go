package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"keryx/events"
	"keryx/internal/termtext"
)

// Writer writes events as lines, or as JSON. It holds them back until Flush, which has
// to be called at the end. It is not safe for concurrent use.
type Writer struct {
	out   *bufio.Writer
	opts  Options
	json  bool
	story story
	day   string
	heard time.Time // of the event before
	hide  func(events.Record) events.Record
}

// NewWriter returns a writer of readable lines.
func NewWriter(out io.Writer, o Options) *Writer { return &Writer{out: bufio.NewWriter(out), opts: o} }

// NewJSONWriter returns a writer of structured CloudEvents, one a line. Holes and gaps
// are lines {"hole":{...}} and {"gap":{...}}.
func NewJSONWriter(out io.Writer) *Writer { return &Writer{out: bufio.NewWriter(out), json: true} }

// Hide has each event written as f returns it.
func (w *Writer) Hide(f func(events.Record) events.Record) { w.hide = f }

// Record writes one event.
func (w *Writer) Record(r events.Record) error {
	if w.hide != nil {
		r = w.hide(r)
	}
	if w.json {
		return w.structured(r)
	}
	if err := w.newDay(r); err != nil {
		return err
	}
	return w.print(w.story.line(r, w.opts))
}

// Heard takes note of an event that is not shown, such as the start of a turn of which
// only the end is.
func (w *Writer) Heard(r events.Record) { w.story.tell(r) }

func (w *Writer) structured(r events.Record) error {
	if r.Event == nil {
		return fmt.Errorf("write event at ordinal %s of %s: it has no CloudEvent", r.Ordinal, r.Scope)
	}
	b, err := events.MarshalStructured(*r.Event)
	if err != nil {
		return fmt.Errorf("write event at ordinal %s of %s: %w", r.Ordinal, r.Scope, err)
	}
	return w.print(string(b))
}

// newDay writes the day when it is another than that of the line before.
func (w *Writer) newDay(r events.Record) error {
	day := r.Time.In(w.opts.location()).Format(dayLayout)
	if day == w.day {
		return nil
	}
	w.day = day
	return w.print(dim.paint("-- "+day, w.opts.Color))
}

type hole struct {
	Scope    events.Scope    `json:"scope"`
	Sequence events.Sequence `json:"sequence"`
	Ordinal  events.Ordinal  `json:"ordinal,omitempty"`
	Error    string          `json:"error"`
}

// Hole says that an event is there and cannot be decoded.
func (w *Writer) Hole(r events.Record, cause error) error {
	if w.json {
		return w.object(map[string]hole{"hole": {r.Scope, r.Sequence, r.Ordinal, cause.Error()}})
	}
	text := fmt.Sprintf("-- hole: event %s of %s (sequence %s) cannot be decoded: %v", r.Ordinal, r.Scope, r.Sequence, cause)
	return w.notice(text)
}

type gap struct {
	Scope events.Scope   `json:"scope"`
	From  events.Ordinal `json:"from_ordinal"`
	To    events.Ordinal `json:"to_ordinal"`
}

// Gap says that events of a scope are no longer kept; both ends are missing.
func (w *Writer) Gap(scope events.Scope, from, to events.Ordinal) error {
	if w.json {
		return w.object(map[string]gap{"gap": {scope, from, to}})
	}
	return w.notice(fmt.Sprintf("-- gap: events %s to %s of %s are no longer kept", from, to, scope))
}

func (w *Writer) notice(text string) error {
	return w.print(layOut([]column{{termtext.Visible(text), bad}}, w.opts))
}

func (w *Writer) object(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode notice: %w", err)
	}
	return w.print(string(b))
}

func (w *Writer) print(line string) error {
	if _, err := w.out.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("write replay: %w", err)
	}
	return nil
}

// Flush writes what was held back.
func (w *Writer) Flush() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write replay: %w", err)
	}
	return nil
}
