package termtext

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxSGR is the longest color sequence that is let through.
const maxSGR = 64

// Filter passes a stream on to a terminal: text, newlines, tabs and colors (SGR) as
// they are, \r\n as \n, and everything else that a terminal would act on spelled out as
// by [Visible]. Characters and sequences may be split over writes. Flush at the end of
// each text. A Filter is not safe for concurrent use.
type Filter struct {
	w      io.Writer
	held   []byte // the beginning of a character or sequence
	styled bool   // a color was set and not taken back
}

// NewFilter returns a filter that writes to w.
func NewFilter(w io.Writer) *Filter { return &Filter{w: w} }

// Write implements io.Writer. It holds back an unfinished character or sequence.
func (f *Filter) Write(p []byte) (int, error) {
	f.held = append(f.held, p...)
	var b strings.Builder
	rest := f.pass(&b, f.held, false)
	f.held = append(f.held[:0], rest...)
	if _, err := io.WriteString(f.w, b.String()); err != nil {
		return 0, fmt.Errorf("write filtered text: %w", err)
	}
	return len(p), nil
}

// Flush writes what was held back and takes back a color that the text left set.
func (f *Filter) Flush() error {
	var b strings.Builder
	f.pass(&b, f.held, true)
	f.held = f.held[:0]
	if f.styled {
		b.WriteString("\x1b[0m")
		f.styled = false
	}
	if _, err := io.WriteString(f.w, b.String()); err != nil {
		return fmt.Errorf("write filtered text: %w", err)
	}
	return nil
}

// pass writes what is complete of p, all of it at the end, and returns the rest.
func (f *Filter) pass(b *strings.Builder, p []byte, end bool) []byte {
	for len(p) > 0 {
		n := f.one(b, p, end)
		if n == 0 {
			return p
		}
		p = p[n:]
	}
	return nil
}

// one writes the first character or sequence of p and returns its length, 0 if it is
// not complete yet.
func (f *Filter) one(b *strings.Builder, p []byte, end bool) int {
	switch p[0] {
	case '\n', '\t':
		b.WriteByte(p[0])
		return 1
	case '\r':
		return carriageReturn(b, p, end)
	case 0x1b:
		return f.escape(b, p, end)
	}
	if !end && !utf8.FullRune(p) {
		return 0
	}
	r, n := utf8.DecodeRune(p)
	writeVisible(b, r, string(p[:n]))
	return n
}

// carriageReturn drops a \r before a \n.
func carriageReturn(b *strings.Builder, p []byte, end bool) int {
	if len(p) == 1 && !end {
		return 0
	}
	if len(p) == 1 || p[1] != '\n' {
		b.WriteString(`\r`)
	}
	return 1
}

// escape passes ESC [ digits m and spells out the ESC of any other sequence, whose rest
// then is plain text.
func (f *Filter) escape(b *strings.Builder, p []byte, end bool) int {
	n, open := sgr(p)
	switch {
	case n > 0:
		b.Write(p[:n])
		f.styled = !isReset(p[:n])
		return n
	case open && !end:
		return 0
	}
	b.WriteString(`\x1b`)
	return 1
}

// sgr returns the length of the color sequence at the start of p, 0 if there is none;
// open means that more bytes could make it one.
func sgr(p []byte) (n int, open bool) {
	if len(p) > 1 && p[1] != '[' {
		return 0, false
	}
	for i := 2; i < len(p); i++ {
		switch c := p[i]; {
		case c == 'm':
			return i + 1, false
		case i >= maxSGR, c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0, false
		}
	}
	return 0, true
}

func isReset(seq []byte) bool {
	s := string(seq)
	return s == "\x1b[m" || s == "\x1b[0m"
}
