package process

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// MaxLine is how many bytes of a line a terminal that edits lines takes, before the line's
// end: N_TTY_BUF_SIZE is 4096 in Linux, one of which is for the end (termios(3)).
const MaxLine = 4095

// lineMode is how a terminal treats input now.
type lineMode struct {
	edits bool   // it hands input over by lines (ICANON)
	ends  []byte // what ends a line
	drops []byte // what throws away the line so far
	erase byte   // takes one byte of it back; 0 for none
}

// modeOf asks a terminal; one that is gone edits no lines.
func modeOf(f *os.File) (m lineMode) {
	_ = control(f, func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		m = modeIn(t)
		return nil
	})
	return m
}

func modeIn(t *unix.Termios) lineMode {
	m := lineMode{edits: t.Lflag&unix.ICANON != 0, erase: t.Cc[unix.VERASE]}
	if t.Iflag&unix.INLCR == 0 {
		m.ends = append(m.ends, '\n')
	}
	if t.Iflag&unix.ICRNL != 0 && t.Iflag&unix.IGNCR == 0 {
		m.ends = append(m.ends, '\r')
	}
	m.ends = appendSet(m.ends, t.Cc[unix.VEOL], t.Cc[unix.VEOL2], t.Cc[unix.VEOF])
	m.drops = appendSet(m.drops, t.Cc[unix.VKILL])
	if t.Lflag&unix.ISIG != 0 {
		m.drops = appendSet(m.drops, t.Cc[unix.VINTR], t.Cc[unix.VQUIT], t.Cc[unix.VSUSP])
	}
	return m
}

// appendSet appends those of some control characters that are not turned off.
func appendSet(to []byte, chars ...byte) []byte {
	for _, c := range chars {
		if c != 0 {
			to = append(to, c)
		}
	}
	return to
}

// line is how long the line is that was typed last and not ended. It counts what may be in
// the terminal, at most: characters that take back a word are not followed.
type line struct{ length int }

// split returns how much of b is to be typed in one piece, and how much after it is to be
// left out because the line is full. Together they are at least one byte of b. What ends a
// line, drops it or takes a byte back is never left out.
func (l *line) split(m lineMode, b []byte) (take, leave int) {
	if !m.edits {
		l.length = 0
		return len(b), 0
	}
	for take < len(b) && (l.length < MaxLine || m.acts(b[take])) {
		l.step(m, b[take])
		take++
	}
	for take+leave < len(b) && !m.acts(b[take+leave]) {
		leave++
	}
	return take, leave
}

func (l *line) step(m lineMode, c byte) {
	switch {
	case bytes.IndexByte(m.ends, c) >= 0, bytes.IndexByte(m.drops, c) >= 0:
		l.length = 0
	case c == m.erase && c != 0:
		l.length = max(0, l.length-1)
	default:
		l.length++
	}
}

// acts reports whether a byte does more than make the line longer.
func (m lineMode) acts(c byte) bool {
	return bytes.IndexByte(m.ends, c) >= 0 || bytes.IndexByte(m.drops, c) >= 0 || c == m.erase && c != 0
}
