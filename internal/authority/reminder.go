package authority

import (
	"context"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// remindEvery is how long an order may go unheeded before it is told again: it may
// have been lost with its receiver's connection. Who gets an order twice knows its id.
const remindEvery = 2 * time.Second

// reminder is an order that is told again until the log shows that it was heeded.
type reminder struct {
	tell   func()
	unmet  func(*lifecycle.State) bool
	nextAt time.Time
}

type reminderKey struct {
	verb string
	exec events.ExecID
}

// remember tells an order again until it is heeded.
func (l *lane) remember(key reminderKey, tell func(), unmet func(*lifecycle.State) bool) {
	if l.reminders == nil {
		l.reminders = make(map[reminderKey]*reminder)
	}
	l.reminders[key] = &reminder{tell: tell, unmet: unmet, nextAt: time.Now().Add(remindEvery)}
}

// repeat tells what is due again and returns when to look next; zero for never.
func (l *lane) repeat(now time.Time) (next time.Time) {
	for key, r := range l.reminders {
		if !r.unmet(l.state) {
			delete(l.reminders, key)
			continue
		}
		if !now.Before(r.nextAt) {
			r.tell()
			r.nextAt = now.Add(remindEvery)
		}
		if earlier(r.nextAt, next) {
			next = r.nextAt
		}
	}
	return next
}

// open returns the open exec of this id.
func openExec(s *lifecycle.State, id events.ExecID) (lifecycle.Exec, bool) {
	for _, e := range s.Execs() {
		if e.Request.Exec == id {
			return e, true
		}
	}
	return lifecycle.Exec{}, false
}

func (l *lane) sendStart(e lifecycle.SendStart) {
	in := l.trace
	tell := func() {
		l.t.tell(events.ExecSubject(l.profile, e.Executor, e.Instance, events.ExecStart), e.Order, in)
	}
	tell()
	id := e.Order.Request.Exec
	l.remember(reminderKey{"start", id}, tell, func(s *lifecycle.State) bool {
		x, open := openExec(s, id)
		return open && !x.Started && !x.Stopping
	})
}

func (l *lane) sendStop(e lifecycle.SendStop) {
	in := l.trace
	tell := func() {
		l.t.tell(events.ExecSubject(l.profile, e.Executor, e.Instance, events.ExecStop), e.Order, in)
	}
	tell()
	l.remember(reminderKey{"stop", e.Order.Exec}, tell, func(s *lifecycle.State) bool {
		_, open := openExec(s, e.Order.Exec)
		return open
	})
}

func (l *lane) sendInterrupt(i lifecycle.Interruption) {
	in := l.trace
	tell := func() {
		l.t.tell(events.HostSubject(l.profile, i.Host, i.Instance, events.HostInterrupt), events.InterruptTurn{
			Session: l.id, Turn: i.Turn, Reason: i.Reason, DeadlineMS: l.t.cfg.InterruptGrace.Milliseconds(),
		}, in)
	}
	tell()
	l.remember(reminderKey{verb: "interrupt"}, tell, func(s *lifecycle.State) bool {
		r := s.Running()
		return r != nil && r.Turn == i.Turn
	})
}

// unanswered is how a command ends that the authority's own end cut off: its sender
// tries again and the next authority answers.
func (t *term) unanswered(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return events.Errorf(events.CodeUnavailable, "the authority stopped meanwhile")
	}
	return err
}
