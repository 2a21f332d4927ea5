package gateway

import (
	"fmt"
	"strings"
	"time"

	"keryx/events"
)

// tellState tells the front what changed, and the person once when no host comes.
func (r *runner) tellState() {
	s := r.now()
	if s != r.state {
		r.front.State(s)
	}
	r.state = s
	if s.Activity != Waiting {
		r.waitingSince, r.noticed = time.Time{}, false
		return
	}
	if r.waitingSince.IsZero() {
		r.waitingSince = time.Now()
	}
	if !r.noticed && time.Since(r.waitingSince) >= hostWithin {
		r.noticed = true
		r.front.Notice(r.waitingFor())
	}
}

func (r *runner) now() State {
	connected := r.conn.NATS().IsConnected()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Activity: Idle, Pending: r.own.waiting()}
	switch {
	case !connected:
		s.Activity = Unreachable
	case r.running != nil:
		s.Activity = Running
		s.For = max(0, time.Since(r.running.Began).Truncate(time.Second))
	case s.Pending > 0 && r.host == "":
		s.Activity = Waiting
	case s.Pending > 0:
		s.Activity = Queued
	}
	return s
}

func (r *runner) waitingFor() string {
	if len(r.wanted) == 0 {
		return "waiting for a host: the profile has none, and none has attached to the session"
	}
	names := make([]string, len(r.wanted))
	for i, n := range r.wanted {
		names[i] = string(n)
	}
	return fmt.Sprintf("waiting for a host: the session wants %s, and none has attached", strings.Join(names, " or "))
}

// outcomeLine says in one line why a turn did not complete; "" when it did.
func outcomeLine(e Ended) string {
	if e.Outcome == events.OutcomeCompleted && !e.Late {
		return ""
	}
	line := "turn " + string(e.Outcome)
	if e.Late {
		line = "a turn given up as lost was reported after all: " + string(e.Outcome)
	}
	if e.Error != "" {
		line += ": " + e.Error
	}
	return line
}
