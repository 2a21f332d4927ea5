package cli

import (
	"fmt"
	"io"

	"keryx/internal/termtext"
)

// Progress shows where something stands: on a terminal one line that changes in place,
// elsewhere a line for each change. It is not safe for concurrent use.
type Progress struct {
	w     io.Writer
	place bool // in place
	last  string
}

// NewProgress shows progress on w.
func NewProgress(w io.Writer) *Progress { return &Progress{w: w, place: IsTerminal(w)} }

// Show replaces what is shown. Text may hold anything: it is made visible. A failure to
// write is not reported, since nothing depends on the line.
func (p *Progress) Show(text string) {
	if text = termtext.Visible(text); text == p.last {
		return
	}
	p.last = text
	if !p.place {
		_, _ = fmt.Fprintln(p.w, text)
		return
	}
	if width := Width(p.w); width > 0 {
		text = termtext.Cut(text, width-1)
	}
	_, _ = fmt.Fprint(p.w, "\r\x1b[K"+text)
}

// Done takes the line away, so that what is printed next begins a line of its own.
func (p *Progress) Done() {
	if p.place && p.last != "" {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.last = ""
}
