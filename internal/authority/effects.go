package authority

import (
	"context"
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// follow does what a committed event asks for outside the log.
func (l *lane) follow(ctx context.Context, rec events.Record) {
	l.perform(lifecycle.Effects(l.state, rec))
	if l.t.cfg.Offline {
		return
	}
	switch rec.Type {
	case events.TypeSessionAttached:
		l.holdLease(ctx)
	case events.TypeSessionDetached:
		if d, err := events.DataOf[events.SessionDetached](rec); err == nil {
			l.dropLease(ctx, d.Instance, string(d.Reason))
		}
	case events.TypeSessionFinalized:
		if l.state.Host == nil {
			l.dropLease(ctx, "", "finalized")
		}
	}
}

// leaseKey is the key under which the session's host shows that it lives.
func (l *lane) leaseKey() events.LeaseKey {
	return events.LeaseKey{Profile: l.profile, Kind: events.LeaseSession, Name: string(l.id)}
}

// holdLease makes the lease record agree with the log, which has decided who drives
// the session.
func (l *lane) holdLease(ctx context.Context) {
	h := l.host()
	if h == nil {
		return
	}
	ttl := time.Duration(h.LeaseTTLMS) * time.Millisecond
	if err := l.t.granter.Expect(ctx, l.leaseKey(), h.Host, h.Instance, ttl); err != nil {
		l.t.logger.Error("write a session's lease", "session", l.id, "error", err)
	}
}

// dropLease ends the record of an instance; of whoever holds it if none is named.
func (l *lane) dropLease(ctx context.Context, instance events.Instance, reason string) {
	rec, _, ok := l.t.granter.Current(l.leaseKey())
	if !ok || rec.State != events.LeaseHeld {
		return
	}
	if instance == "" {
		instance = rec.Instance
	}
	if err := l.t.granter.Drop(ctx, l.leaseKey(), instance, reason); err != nil {
		l.t.logger.Error("end a session's lease", "session", l.id, "error", err)
	}
}

// perform tells hosts and executors.
func (l *lane) perform(effects []lifecycle.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case lifecycle.SendOffer:
			l.offerSent = time.Now()
			l.t.tell(events.HostSubject(l.profile, e.Host, e.Instance, events.HostOffer), e.Offer, l.trace)
		case lifecycle.SendSteer:
			l.offerSent = time.Now()
			l.t.tell(events.HostSubject(l.profile, e.Host, e.Instance, events.HostSteer), e.Steer, l.trace)
		case lifecycle.SendDetached:
			l.t.tell(events.HostSubject(l.profile, e.Host, e.Instance, events.HostDetached), e.Order, l.trace)
		case lifecycle.SendStart:
			l.sendStart(e)
		case lifecycle.SendStop:
			l.sendStop(e)
		case lifecycle.SendInvoke:
			l.t.tell(events.HandlerSubject(l.profile, e.Handler.Principal, e.Handler.Instance, events.HandlerInvoke), e.Order, l.trace)
		case lifecycle.SendQuestion:
			l.t.tell(events.PolicySubject(l.profile, e.Judge.Principal, e.Judge.Instance), e.Question, l.trace)
		}
	}
}

// settle does what the session owes until nothing is left, and asks to be woken when
// there will be more. It runs after every job of the lane.
func (l *lane) settle(ctx context.Context) {
	if l.state == nil || !l.state.Exists() {
		return
	}
	defer l.answerWaiting()
	for range maxSteps {
		if l.timeOut(ctx) {
			continue
		}
		l.abort() // before owe, which asks to be woken for the deadline
		if l.owe(ctx) || l.useApproval(ctx) {
			continue
		}
		if len(l.parked) > 0 && l.state.Running() == nil {
			l.unpark(ctx)
			continue
		}
		return
	}
	l.t.logger.Error("session owes without end", "session", l.id)
}

// abort tells the host to end the running turn if an item interrupts it. What is to be
// aborted is a matter of the log; only the deadline is this authority's own.
func (l *lane) abort() {
	i, ok := lifecycle.Aborting(l.state)
	if ok && l.interrupted != i.Turn && !l.t.cfg.Offline {
		l.setDeadline(i)
		l.sendInterrupt(i)
	}
}

// setDeadline begins the grace of an interrupted turn, once.
func (l *lane) setDeadline(i lifecycle.Interruption) {
	if l.interrupted == i.Turn {
		return
	}
	l.interrupted, l.deadline = i.Turn, time.Now().Add(l.t.cfg.InterruptGrace)
	if l.t.cfg.Offline { // no host can be connected, so none will end it
		l.deadline = time.Now()
	}
}

// timeOut ends an interrupted turn as lost when its host did not end it in time.
func (l *lane) timeOut(ctx context.Context) bool {
	turn := l.state.Running()
	if turn == nil || turn.Turn != l.interrupted {
		l.interrupted, l.deadline = "", time.Time{} // it has ended
		return false
	}
	if l.deadline.IsZero() || time.Now().Before(l.deadline) {
		return false
	}
	l.deadline = time.Now().Add(ownRetry)
	l.internal(ctx, lifecycle.TurnTimeout{Turn: turn.Turn})
	return true
}

// owe appends the next thing owed; it reports false when there is none now.
func (l *lane) owe(ctx context.Context) bool {
	if l.t.cfg.Offline {
		return false
	}
	now := time.Now()
	d, next := lifecycle.Owed(l.state, now, events.NewID)
	blocked := len(l.parked) > 0 && len(d.Drafts) > 0 && d.Drafts[0].Type == events.TypeContinuationOffered
	if len(d.Drafts) > 0 && !blocked {
		return l.commitOwn(ctx, d)
	}
	l.remind(now)
	l.sleep(next, l.repeat(now))
	return false
}

// remind tells a host again of an offer it has not answered.
func (l *lane) remind(now time.Time) {
	again, due := lifecycle.Remind(l.state, l.offerSent, now)
	if again != nil {
		l.perform([]lifecycle.Effect{again})
	}
	_ = due // sleep computes it anew from the time just set
}

// sleep asks for the next look at this session.
func (l *lane) sleep(next, reminder time.Time) {
	if earlier(reminder, next) {
		next = reminder
	}
	if _, due := lifecycle.Remind(l.state, l.offerSent, time.Time{}); earlier(due, next) {
		next = due
	}
	if earlier(l.deadline, next) {
		next = l.deadline
	}
	l.t.wake(l, next)
}

// earlier reports whether a is set and before b, or b is not set.
func earlier(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }

// internal runs one of the authority's own commands to its end.
func (l *lane) internal(ctx context.Context, data any) {
	cmd := lifecycle.Command{
		ID: events.CommandID(events.NewID()), Data: data, Session: l.id, Caller: l.authority(),
		Generation: l.t.cfg.Generation, Mint: events.NewID,
	}
	if !l.awake(ctx) {
		return
	}
	for range maxSteps {
		cmd.Now = time.Now()
		cmd.Sent = cmd.Now
		if err := l.outside(&cmd); err != nil {
			l.t.logger.Warn("own command refused", "session", l.id, "command", fmt.Sprintf("%T", data), "error", err)
			return
		}
		d, err := lifecycle.Decide(l.state, cmd)
		if err != nil {
			l.t.logger.Warn("own command refused", "session", l.id, "command", fmt.Sprintf("%T", data), "error", err)
			return
		}
		l.perform(d.Effects)
		if len(d.Drafts) == 0 {
			return
		}
		if done := l.commitOwn(ctx, d); ctx.Err() != nil || (done && !d.Again) {
			return
		}
	}
}

func (l *lane) authority() events.Principal {
	return events.Principal{Profile: l.profile, Name: events.AuthorityName}
}

// ownRetry is how long the authority waits before it tries again what it owes and
// could not append, e.g. because the store is full.
const ownRetry = time.Second

// commitOwn appends what the authority itself decided. When it could not, the state
// is read anew, the lane is woken later, and the caller decides again from there.
func (l *lane) commitOwn(ctx context.Context, d lifecycle.Decision) bool {
	err := l.commit(ctx, step{decision: d, by: l.authority(), now: time.Now()})
	if err == nil {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	l.t.logger.Warn("append what is owed", "session", l.id, "error", err)
	if err := l.refresh(ctx); err != nil {
		l.t.logger.Error("read a session anew", "session", l.id, "error", err)
	}
	l.t.wake(l, time.Now().Add(ownRetry))
	return false
}
