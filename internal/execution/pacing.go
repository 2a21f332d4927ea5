package execution

import (
	"time"

	"keryx/events"
)

// Output is gathered into chunks: the first after a silence goes at once, what follows
// waits for a moment of quiet, but never longer than the limit.
const (
	gatherQuiet = 10 * time.Millisecond
	gatherLimit = 25 * time.Millisecond
)

// pending says what the sender is to do next.
type pending int

const (
	pendingNothing pending = iota // wait for output or the end
	pendingLater                  // wait a while, more may come
	pendingNow                    // send
	pendingDone                   // all is sent, and no more comes
)

// due tells what to do at now, and for pendingLater how long to wait. flushed is when
// output was sent last.
func (s *spool) due(now, flushed time.Time) (pending, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.runs) == 0 && s.ended:
		return pendingDone, 0
	case len(s.runs) == 0:
		return pendingNothing, 0
	case s.ended, s.unsent >= events.MaxChunk, s.first.Sub(flushed) >= gatherQuiet:
		return pendingNow, 0
	}
	at := s.first.Add(gatherLimit)
	if quiet := s.last.Add(gatherQuiet); quiet.Before(at) {
		at = quiet
	}
	if !now.Before(at) {
		return pendingNow, 0
	}
	return pendingLater, at.Sub(now)
}
