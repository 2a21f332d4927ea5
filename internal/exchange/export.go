package exchange

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/archive"
	"keryx/internal/travel"
	"keryx/schemas"
)

// Source is where a record comes from; *client.Conn is one.
type Source interface {
	travel.Source
	KeptOutput(ctx context.Context, scope events.Scope, exec events.ExecID, fn func(client.Chunk)) error
}

// Filter takes out what is not to leave the bus. It returns what to write in place.
type Filter interface {
	Event(events.Record) (events.Record, error)
	// Raw filters what could not be decoded.
	Raw(archive.Raw) (archive.Raw, error)
	// Output filters an exec's output, chunk by chunk in order.
	Output(archive.Chunk) ([]archive.Chunk, error)
	// End returns what of an exec's output was held back.
	End(events.ExecID) []archive.Chunk
	// Mode is what the file says of the filter.
	Mode() events.Redaction
}

// Job says what to export.
type Job struct {
	Profile events.Profile
	Scope   events.Scope // of a session, or of an imported one
	// Output: false leaves the output of execs out.
	Output bool
	// Software is what the file says that it was written by.
	Software string
	// Filter takes out what is not to be in the file; nil for nothing.
	Filter Filter
	// Now is the time that the file says.
	Now time.Time
	// Progress is told how many events and chunks were read so far, at times; nil for
	// nobody.
	Progress func(done int)
}

// Export writes the record to out and returns the file's header.
func Export(ctx context.Context, src Source, j Job, out io.Writer) (archive.Header, error) {
	if j.Filter == nil {
		j.Filter = Whole{}
	}
	h := archive.Header{
		Profile: j.Profile, Session: j.Scope.Session(), ExportedAt: j.Now.UTC(), Software: j.Software,
		Schemas: schemas.SetHash(), Redaction: j.Filter.Mode(),
	}
	r := &reading{src: src, job: j}
	counting := archive.NewWriter(io.Discard)
	if err := r.write(ctx, counting); err != nil {
		return h, err
	}
	h = counting.Counted(h)
	w := archive.NewWriter(out)
	if err := w.Header(h); err != nil {
		return h, err
	}
	if err := r.write(ctx, w); err != nil {
		return h, err
	}
	if err := w.End(); err != nil {
		return h, err
	}
	return w.Counted(h), nil
}

// reading reads one record, twice.
type reading struct {
	src  Source
	job  Job
	last events.Sequence // where the record ends; 0 before it was read once
	done int
}

func (r *reading) write(ctx context.Context, w *archive.Writer) error {
	execs, err := r.events(ctx, w)
	if err != nil || !r.job.Output {
		return err
	}
	for _, id := range execs {
		if err := r.output(ctx, w, id); err != nil {
			return fmt.Errorf("export output of exec %s: %w", id, err)
		}
	}
	return nil
}

// events writes the record and returns its execs in order of their ids.
func (r *reading) events(ctx context.Context, w *archive.Writer) ([]events.ExecID, error) {
	var execs []events.ExecID
	var failed error
	src := &undecoded{Source: r.src}
	seen, tip, err := travel.Walk(ctx, src, r.job.Scope, func(rec events.Record, hole error) bool {
		if r.last != 0 && rec.Sequence > r.last {
			return false
		}
		if d, err := events.DataOf[events.ExecRequested](rec); hole == nil && err == nil && rec.Type == events.TypeExecRequested {
			execs = append(execs, d.Exec)
		}
		r.progress()
		failed = r.message(w, rec, hole, src)
		return failed == nil
	})
	switch {
	case err != nil || failed != nil:
		return nil, or(failed, err)
	case !seen:
		return nil, events.Errorf(events.CodeUnknownSession, "the record of %s is empty", r.job.Scope)
	}
	if r.last == 0 {
		r.last = tip.Sequence
	}
	slices.Sort(execs)
	return slices.Compact(execs), nil
}

func or(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// message writes one message of the record as the filter leaves it.
func (r *reading) message(w *archive.Writer, rec events.Record, hole error, src *undecoded) error {
	if hole == nil {
		filtered, err := r.job.Filter.Event(rec)
		if err != nil {
			return fmt.Errorf("export event at ordinal %s: %w", rec.Ordinal, err)
		}
		return w.Event(filtered)
	}
	m := src.page.Undecoded[rec.Sequence]
	if m == nil {
		return fmt.Errorf("export what is at sequence %s: it is not there any more", rec.Sequence)
	}
	raw := archive.Raw{Place: archive.Place{Sequence: rec.Sequence, Ordinal: rec.Ordinal}, Header: own(m.Header), Data: m.Data}
	raw, err := r.job.Filter.Raw(raw)
	if err != nil {
		return fmt.Errorf("export what is at sequence %s: %w", rec.Sequence, err)
	}
	return w.Raw(raw)
}

// own leaves out the headers by which a page says where a message is from.
func own(h map[string][]string) map[string][]string {
	out := make(map[string][]string, len(h))
	for name, values := range h {
		if len(name) < 6 || name[:6] != "Keryx-" {
			out[name] = values
		}
	}
	return out
}

func (r *reading) output(ctx context.Context, w *archive.Writer, id events.ExecID) error {
	var failed error
	err := r.src.KeptOutput(ctx, r.job.Scope, id, func(c client.Chunk) {
		if failed != nil || len(c.Data) == 0 {
			return
		}
		out := archive.Chunk{Exec: id, Number: c.Number, Stream: c.Stream, Offset: c.Offset, Data: c.Data}
		if !c.Time.IsZero() {
			out.TimeUS = c.Time.UnixMicro()
		}
		r.progress()
		filtered, err := r.job.Filter.Output(out)
		failed = or(err, writeChunks(w, filtered))
	})
	if err := or(failed, err); err != nil {
		return err
	}
	return writeChunks(w, r.job.Filter.End(id))
}

func writeChunks(w *archive.Writer, chunks []archive.Chunk) error {
	for _, c := range chunks {
		if err := w.Chunk(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) progress() {
	if r.done++; r.job.Progress != nil && r.done%1000 == 0 {
		r.job.Progress(r.done)
	}
}

// undecoded remembers the page that was read last.
type undecoded struct {
	Source
	page client.Page
}

// Page implements travel.Source.
func (u *undecoded) Page(ctx context.Context, scope events.Scope, from events.Sequence, limit int) (client.Page, error) {
	var err error
	u.page, err = u.Source.Page(ctx, scope, from, limit)
	return u.page, err
}

// Whole is a filter that takes out nothing.
type Whole struct{}

// Event implements Filter.
func (Whole) Event(r events.Record) (events.Record, error) { return r, nil }

// Raw implements Filter.
func (Whole) Raw(r archive.Raw) (archive.Raw, error) { return r, nil }

// Output implements Filter.
func (Whole) Output(c archive.Chunk) ([]archive.Chunk, error) { return []archive.Chunk{c}, nil }

// End implements Filter.
func (Whole) End(events.ExecID) []archive.Chunk { return nil }

// Mode implements Filter.
func (Whole) Mode() events.Redaction { return events.RedactNone }
