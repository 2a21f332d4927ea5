package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"keryx/client"
	"keryx/internal/screen"
)

const (
	// hintFor is how long a hint stays on the last line, and hintBytes how much may come
	// meanwhile.
	hintFor   = 3 * time.Second
	hintBytes = 256 << 10
	// pictureBytes of the newest output make the picture, more than the scrollback holds; it
	// is a quarter of a second's work for the model (measured: 1.2 to 8 MB/s).
	pictureBytes = 256 << 10
)

// window shows a terminal: a picture of what was before, then what comes. Close it.
type window struct {
	out   io.Writer
	until uint64 // the last chunk that belongs to the picture
	// hint is shown on the last line of the picture for a while. rows is how many lines
	// there are here; without, there is no hint.
	hint string
	rows int

	mu      sync.Mutex
	model   *screen.Screen // nil once nothing is painted any more
	painted bool
	recent  []client.Chunk // the newest, not in the model yet
	size    int            // of recent, in bytes
	unhint  *time.Timer
	hinted  int // how much may come before the hint is left as it is
	err     error
}

func (w *window) chunk(c client.Chunk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.painted && c.Number > w.until { // those before were not kept
		w.paintLocked()
	}
	w.modelLocked(c)
	switch {
	case w.painted && c.Missing > 0:
		w.write(fmt.Appendf(nil, "\r\n\x1b[0;7m[... %d bytes were skipped ...]\x1b[0m\r\n", c.Missing))
		fallthrough
	case w.painted:
		w.write(c.Data)
	case c.Number == w.until:
		w.paintLocked()
	}
}

// modelLocked keeps the model up to date, which is slow: of what is far back only the modes
// are taken, and a flood takes the hint with it.
func (w *window) modelLocked(c client.Chunk) {
	if w.model == nil {
		return
	}
	if w.painted {
		if w.hinted -= len(c.Data); w.hinted < 0 {
			w.dropLocked()
			return
		}
	}
	c.Data = bytes.Clone(c.Data)
	w.recent, w.size = append(w.recent, c), w.size+len(c.Data)
	for len(w.recent) > 0 && w.size-len(w.recent[0].Data) >= pictureBytes {
		old := w.recent[0]
		w.recent, w.size = w.recent[1:], w.size-len(old.Data)
		w.model.Skim(old.Data)
	}
}

// drawLocked puts what is recent into the model, at the sizes that it was made for.
func (w *window) drawLocked() {
	for _, c := range w.recent {
		if c.Rows > 0 && c.Cols > 0 {
			w.model.Resize(c.Rows, c.Cols)
		}
		_, err := w.model.Write(c.Data)
		w.note(err)
	}
	w.recent, w.size = nil, 0
}

func (w *window) paint() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paintLocked()
}

func (w *window) paintLocked() {
	w.painted, w.hinted = true, hintBytes
	w.drawLocked()
	w.write(w.model.Paint())
	if w.hint == "" || w.rows == 0 {
		w.dropLocked()
		return
	}
	w.write(fmt.Appendf(nil, "\x1b7\x1b[%d;1H\x1b[0;7m%s\x1b[0m\x1b8", w.rows, w.hint))
	w.unhint = time.AfterFunc(hintFor, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.model != nil {
			w.drawLocked()
			w.write(w.model.Paint())
			w.dropLocked()
		}
	})
}

// leave leaves this terminal as a shell expects it, and ends the window.
func (w *window) leave() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropLocked()
	w.write([]byte(screen.Reset + "\x1b[?25h"))
	return w.err
}

// dropLocked gives the model up.
func (w *window) dropLocked() {
	if w.unhint != nil {
		w.unhint.Stop()
	}
	if w.model != nil {
		w.note(w.model.Close())
		w.model = nil
	}
}

func (w *window) write(b []byte) {
	_, err := w.out.Write(b)
	w.note(err)
}

func (w *window) note(err error) {
	if w.err == nil {
		w.err = err
	}
}
