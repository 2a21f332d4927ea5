package authority

import (
	"context"
	"time"

	"keryx/internal/lifecycle"
)

// historyFor is how long the history of a session is kept after it was asked for.
const historyFor = 10 * time.Second

// runSweeps takes out of memory what was not used for a while.
func (t *term) runSweeps() {
	tick := time.NewTicker(t.cfg.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-t.work.Done():
			return
		}
		for l := range t.sessions.all("") {
			if l.mayRest() {
				l.add(0, l.rest)
			}
		}
	}
}

// mayRest reports whether it is time to look whether a session can leave memory.
func (l *lane) mayRest() bool {
	idle := l.t.idleFor(l)
	long := idle >= l.t.cfg.UnloadAfter && l.t.uptime() >= time.Duration(l.restAt.Load())
	return (long || idle >= historyFor && l.remembers.Load()) && l.view(func(*lifecycle.State) {})
}

// idleFor is how long ago a lane worked last.
func (t *term) idleFor(l *lane) time.Duration { return t.uptime() - time.Duration(l.used.Load()) }

// rest takes the history of a session out of memory, and its state after some more time,
// if nothing is going on in it.
func (l *lane) rest(context.Context) {
	idle := l.t.idleFor(l)
	if idle >= historyFor {
		l.history = nil
		l.remembers.Store(false)
	}
	busy := len(l.parked) > 0 || len(l.reminders) > 0 || l.interrupted != ""
	if idle < l.t.cfg.UnloadAfter || l.state == nil || !l.state.Exists() {
		return
	}
	b := l.state.Brief(time.Now())
	if b.Busy || busy {
		l.restAt.Store(int64(l.t.uptime() + l.t.cfg.UnloadAfter))
		return
	}
	if l.since > snapshotAfter {
		l.saveSnapshot()
	}
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	l.state, l.history, l.brief = nil, nil, b
	l.remembers.Store(false)
}
