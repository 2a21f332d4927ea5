package archive

import (
	"bufio"
	"fmt"
	"io"

	"keryx/events"
)

// Writer writes a file: [Writer.Header], then events and what is none, then output, then
// [Writer.End]. It is not safe for concurrent use.
type Writer struct {
	out     *bufio.Writer
	chain   Hash
	content Hash
	header  Header
	events  int
	chunks  int
	first   Place
	last    Place
	buf     []byte
}

// NewWriter returns a writer of a file.
func NewWriter(out io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(out, 1<<16)} }

// Header begins the file. Format and version are filled in.
func (w *Writer) Header(h Header) error {
	h.Format, h.Version = format, Version
	w.header = h
	body, err := events.MarshalData(h)
	if err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	return w.line(kindHeader, body)
}

// Event writes an event of the record.
func (w *Writer) Event(r events.Record) error {
	if r.Event == nil {
		return fmt.Errorf("write event at ordinal %s: it has no CloudEvent", r.Ordinal)
	}
	body, err := event(*r.Event)
	if err != nil {
		return fmt.Errorf("write event at ordinal %s: %w", r.Ordinal, err)
	}
	w.counted(Place{r.Sequence, r.Ordinal})
	return w.body(kindEvent, body)
}

// Raw writes what is no event that could be decoded.
func (w *Writer) Raw(r Raw) error {
	body, err := events.MarshalData(r)
	if err != nil {
		return fmt.Errorf("write what is at sequence %s: %w", r.Sequence, err)
	}
	w.counted(r.Place)
	return w.body(kindRaw, body)
}

func (w *Writer) counted(p Place) {
	if w.events == 0 {
		w.first = p
	}
	w.events++
	w.last = p
}

// Chunk writes a piece of output.
func (w *Writer) Chunk(c Chunk) error {
	body, err := events.MarshalData(c)
	if err != nil {
		return fmt.Errorf("write chunk %d of exec %s: %w", c.Number, c.Exec, err)
	}
	w.chunks++
	return w.body(kindChunk, body)
}

// body writes a line that counts as content.
func (w *Writer) body(kind string, body []byte) error {
	w.content = w.content.next(kind, body)
	return w.line(kind, body)
}

func (w *Writer) line(kind string, body []byte) error {
	w.chain = w.chain.next(kind, body)
	w.buf = appendLine(w.buf[:0], w.chain, kind, body)
	if len(w.buf) > MaxLine {
		return fmt.Errorf("write %s: the line has %d bytes, at most %d are taken", kind, len(w.buf), MaxLine)
	}
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("write %s: %w", kind, err)
	}
	return nil
}

// Counted returns h with what was written so far, for a writer that has to say it first.
func (w *Writer) Counted(h Header) Header {
	h.Events, h.Chunks, h.First, h.Last, h.Content = w.events, w.chunks, w.first, w.last, w.content
	return h
}

// End closes the file and flushes it. It fails if the header says something else than was
// written.
func (w *Writer) End() error {
	if got := w.Counted(w.header); got != w.header {
		return fmt.Errorf("the record changed while it was exported: the header says %d events and %d chunks, written are %d and %d",
			w.header.Events, w.header.Chunks, got.Events, got.Chunks)
	}
	body, err := events.MarshalData(end{w.events, w.chunks, w.content})
	if err != nil {
		return fmt.Errorf("write end: %w", err)
	}
	if err := w.line(kindEnd, body); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write end: %w", err)
	}
	return nil
}
