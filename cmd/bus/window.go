package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"keryx/client"
	"keryx/internal/screen"
)

// hintFor is how long a hint stays on the last line.
const hintFor = 3 * time.Second

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
	unhint  *time.Timer
	err     error
}

func (w *window) chunk(c client.Chunk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.painted && c.Number > w.until { // those before were not kept
		w.paintLocked()
	}
	if w.model != nil {
		if c.Rows > 0 && c.Cols > 0 {
			w.model.Resize(c.Rows, c.Cols)
		}
		_, err := w.model.Write(c.Data)
		w.note(err)
	}
	switch {
	case w.painted:
		w.write(c.Data)
	case c.Number == w.until:
		w.paintLocked()
	}
}

func (w *window) paint() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paintLocked()
}

func (w *window) paintLocked() {
	w.painted = true
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
