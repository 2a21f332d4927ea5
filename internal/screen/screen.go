package screen

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Scrollback is how many lines that were scrolled away are kept.
const Scrollback = 2000

// Screen is what a terminal shows. It is not safe for concurrent use. Close it.
type Screen struct {
	model *vt.Emulator
	cut   cutter
	modes map[ansi.Mode]bool
	title string
	wg    sync.WaitGroup
}

// New returns an empty screen.
func New(rows, cols int) *Screen {
	s := &Screen{model: vt.NewEmulator(cols, rows), modes: make(map[ansi.Mode]bool)}
	s.model.SetScrollbackSize(Scrollback)
	s.model.SetCallbacks(vt.Callbacks{
		Title:       func(t string) { s.title = t },
		EnableMode:  func(m ansi.Mode) { s.modes[m] = true },
		DisableMode: func(m ansi.Mode) { s.modes[m] = false },
	})
	// The model answers the program's questions, and waits until somebody has read it.
	s.wg.Go(func() { _, _ = io.Copy(io.Discard, s.model) })
	return s
}

// Close ends the use of the screen.
func (s *Screen) Close() error {
	// Not Close of the model, which its reader looks at without a lock.
	if c, ok := s.model.InputPipe().(io.Closer); ok {
		if err := c.Close(); err != nil {
			return fmt.Errorf("close screen: %w", err)
		}
	}
	s.wg.Wait()
	return nil
}

// Write takes output of the program. It never fails.
func (s *Screen) Write(b []byte) (int, error) {
	if whole := s.cut.feed(b); len(whole) > 0 {
		_, _ = s.model.Write(whole) // fails when closed only
	}
	return len(b), nil
}

// Skim takes output that is so far back that its text does not matter any more, only the
// modes that it has set: of a flood it is a hundred times faster than Write.
func (s *Screen) Skim(b []byte) {
	whole := s.cut.feed(b)
	for {
		at := bytes.IndexByte(whole, 0x1b)
		if at < 0 {
			return
		}
		whole = whole[at:]
		n := sequence(whole)
		_, _ = s.model.Write(whole[:n]) // fails when closed only
		whole = whole[n:]
	}
}

// Resize changes the size; lines are not broken anew.
func (s *Screen) Resize(rows, cols int) { s.model.Resize(cols, rows) }

// Reset makes a terminal forget what it shows and how: the alternate screen, every mode
// that a program may have left on, colours, margins, and the lines scrolled away.
const Reset = "\x1b[?1049l\x1b[!p\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m\x1b[r\x1b[H\x1b[2J\x1b[3J"

// Paint returns what makes a terminal of the same size show the screen, with the modes in
// force. What the program writes next can follow it.
func (s *Screen) Paint() []byte {
	var b strings.Builder
	b.WriteString(Reset + "\x1b[?7l") // a full line must not wrap while it is painted
	if s.title != "" {
		fmt.Fprintf(&b, "\x1b]2;%s\x07", s.title)
	}
	s.paintLines(&b)
	s.paintModes(&b)
	s.paintCursor(&b)
	b.Write(s.cut.held)
	return []byte(b.String())
}

func (s *Screen) paintLines(b *strings.Builder) {
	if back := s.model.Scrollback(); back != nil {
		for _, line := range back.Lines() {
			b.WriteString("\x1b[0m" + line.Render() + "\r\n")
		}
		if s.model.IsAltScreen() && back.Len() > 0 {
			// Off the screen, where they belong: what was below them is not known.
			b.WriteString(strings.Repeat("\r\n", s.model.Height()-1))
		}
	}
	if s.model.IsAltScreen() {
		b.WriteString("\x1b[?1049h\x1b[H\x1b[2J")
	}
	rows := strings.Split(s.model.Render(), "\n")
	for i, row := range rows {
		b.WriteString("\x1b[0m" + strings.TrimSuffix(row, "\r"))
		if i < len(rows)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString("\x1b[0m")
}

// paintModes turns on what is on, and off what is on by itself. Screens were changed
// before; the cursor comes last.
func (s *Screen) paintModes(b *strings.Builder) {
	wrap := true
	for _, mode := range slices.SortedFunc(maps.Keys(s.modes), func(x, y ansi.Mode) int { return x.Mode() - y.Mode() }) {
		on := s.modes[mode]
		switch mode {
		case ansi.ModeAltScreen, ansi.ModeAltScreenSaveCursor, ansi.ModeSaveCursor, ansi.ModeTextCursorEnable:
		case ansi.ModeAutoWrap:
			wrap = on
		default:
			if on {
				b.WriteString(ansi.SetMode(mode))
			}
		}
	}
	if wrap {
		b.WriteString("\x1b[?7h")
	}
}

func (s *Screen) paintCursor(b *strings.Builder) {
	at := s.model.CursorPosition()
	fmt.Fprintf(b, "\x1b[%d;%dH", at.Y+1, at.X+1)
	style, blink := s.model.CursorStyle()
	n := 2*int(style) + 1
	if !blink {
		n++
	}
	fmt.Fprintf(b, "\x1b[%d q", n)
	if s.model.CursorHidden() {
		b.WriteString("\x1b[?25l")
	} else {
		b.WriteString("\x1b[?25h")
	}
}

// Text returns what is shown, without colours: for people and tests.
func (s *Screen) Text() string { return s.model.String() }
