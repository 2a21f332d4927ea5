package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"keryx/events"
)

// notesPause gathers what was not taken of a large paste into one line.
const notesPause = 300 * time.Millisecond

// notes are lines about a terminal, beside what it shows.
type notes struct {
	w io.Writer

	mu    sync.Mutex
	end   string // of a line: a raw terminal wants \r\n
	bytes int    // not taken, not told yet
	why   string
	timer *time.Timer
}

func newNotes(w io.Writer) *notes { return &notes{w: w, end: "\n"} }

// raw says that the terminal is raw now.
func (n *notes) raw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end = "\r\n"
}

func (n *notes) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sayLocked(format, args...)
}

func (n *notes) sayLocked(format string, args ...any) {
	begin := ""
	if n.end == "\r\n" {
		begin = "\r\n" // the program's own line is not finished
	}
	// A terminal that is gone hears nothing, and the command ends for that.
	_, _ = fmt.Fprintf(n.w, "%s[%s]%s", begin, fmt.Sprintf(format, args...), n.end)
}

// left notes what a terminal did not take.
func (n *notes) left(a events.TTYAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bytes += a.Left
	n.why = a.Error.Message
	if n.timer == nil {
		n.timer = time.AfterFunc(notesPause, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.tellLocked()
		})
	}
}

func (n *notes) tellLocked() {
	n.timer = nil
	if n.why != "" {
		n.sayLocked("%d bytes were not taken: %s", n.bytes, n.why)
	}
	n.bytes, n.why = 0, ""
}

// close tells what was not told yet.
func (n *notes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer != nil {
		n.timer.Stop()
	}
	n.tellLocked()
	n.end = "\n"
}
