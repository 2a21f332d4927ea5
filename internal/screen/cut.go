package screen

import "unicode/utf8"

// maxHeld is how much of an unfinished sequence is held back; a longer one is let go.
const maxHeld = 64 << 10

// cutter finds where sequences and characters end (ECMA-48, and UTF-8).
type cutter struct {
	state state
	held  []byte // the unfinished rest
}

type state int

const (
	ground state = iota
	escape
	csi
	text // of OSC, DCS, SOS, PM, APC: until ST or BEL
	textEscape
	character
)

// feed returns what is whole of all that came, and holds back the rest.
func (c *cutter) feed(b []byte) []byte {
	all := append(c.held, b...)
	whole := 0
	for i := len(c.held); i < len(all); i++ {
		if c.step(all[whole:i+1], all[i]); c.state == ground {
			whole = i + 1
		}
	}
	if len(all)-whole > maxHeld {
		c.state, whole = ground, len(all)
	}
	c.held = append([]byte(nil), all[whole:]...)
	return all[:whole]
}

// step takes a byte; so far is what is unfinished, that byte included.
func (c *cutter) step(soFar []byte, b byte) {
	switch {
	case b == 0x18 || b == 0x1a: // CAN, SUB: whatever it was, it is broken off
		c.state = ground
	case b == 0x1b && c.state == text:
		c.state = textEscape
	case b == 0x1b:
		c.state = escape
	case c.state == ground || c.state == character:
		c.character(soFar)
	case c.state == escape:
		c.escaped(b)
	case c.state == csi && b >= 0x40 && b <= 0x7e:
		c.state = ground
	case c.state == text && b == 0x07:
		c.state = ground
	case c.state == textEscape:
		c.state = ground
		if b != '\\' {
			c.escaped(b)
		}
	}
}

func (c *cutter) character(soFar []byte) {
	c.state = ground
	if !utf8.FullRune(soFar) {
		c.state = character
	}
}

// escaped takes what follows ESC.
func (c *cutter) escaped(b byte) {
	switch {
	case b == '[':
		c.state = csi
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		c.state = text
	case b >= 0x20 && b <= 0x2f: // more to come
		c.state = escape
	default:
		c.state = ground
	}
}

// sequence returns the length of the sequence that b begins with: all of b if it does not
// end there.
func sequence(b []byte) int {
	var c cutter
	for i := range b {
		if c.step(b[:i+1], b[i]); c.state == ground {
			return i + 1
		}
	}
	return len(b)
}
