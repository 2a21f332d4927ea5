package gateway

import (
	"io"
	"time"
)

// Keys of a raw terminal.
const (
	keyCtrlC = 0x03
	keyCtrlE = 0x05 // the editor goes to the end of the line
	keyCtrlU = 0x15 // the editor clears the line before the cursor
)

// leaveWithin is how soon a second Ctrl-C must follow the first to leave.
const leaveWithin = 2 * time.Second

// keys passes typed bytes on to the line editor, which would take Ctrl-C for the end of
// input. Instead it clears the line and asks interrupt whether to leave.
type keys struct {
	in io.Reader
	// interrupt is told of a Ctrl-C; again when one came just before with no other key
	// between. If it returns true the input ends.
	interrupt func(again bool) (leave bool)

	last    time.Time
	pending []byte
	over    bool
}

// Read implements io.Reader.
func (k *keys) Read(p []byte) (int, error) {
	for len(k.pending) == 0 {
		if k.over {
			return 0, io.EOF
		}
		buf := make([]byte, 256)
		n, err := k.in.Read(buf)
		if n == 0 && err != nil {
			return 0, err
		}
		k.translate(buf[:n])
	}
	n := copy(p, k.pending)
	k.pending = k.pending[n:]
	return n, nil
}

func (k *keys) translate(typed []byte) {
	for _, c := range typed {
		if c != keyCtrlC {
			k.last = time.Time{}
			k.pending = append(k.pending, c)
			continue
		}
		again := !k.last.IsZero() && time.Since(k.last) <= leaveWithin
		k.last = time.Now()
		if k.interrupt(again) {
			k.over = true
			return
		}
		k.pending = append(k.pending, keyCtrlE, keyCtrlU)
	}
}
