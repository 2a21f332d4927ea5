package lifecycle

import (
	"time"

	"keryx/events"
	"keryx/internal/idle"
)

// Owed returns what the state asks for by now, never more than one event, and when to
// look again; the zero time is not before the next event. What it returns is to be
// appended in the name of the authority, folded, and asked for again.
func Owed(s *State, now time.Time, mint func() string) (d Decision, next time.Time) {
	if !s.Open() {
		return Decision{}, time.Time{}
	}
	if draft, ok := s.owedNow(now, mint); ok {
		draft.Own = true
		return Decision{Drafts: []Draft{draft}}, now
	}
	return Decision{}, s.nextLook(now)
}

func (s *State) owedNow(now time.Time, mint func() string) (Draft, bool) {
	if s.clocks.idle != nil {
		return s.draftIdle(), true
	}
	if d, ok := s.overdue(now); ok {
		return d, true
	}
	switch o, open := s.OpenOffer(); {
	case open && !s.resends() && due(o.Due(), now):
		return s.draftUnresolved("no answer within " + o.Deadline.String()), true
	case due(s.hostGone(), now):
		return s.owedEnd(events.ReasonHostGone), true
	case s.idleExpired(now):
		return s.owedEnd(events.ReasonIdleExpired), true
	}
	if draft, ok := s.owedExit(now, mint); ok {
		return draft, true
	}
	if d, ok := s.owedRelease(now); ok {
		return d, true
	}
	return s.owedOffer(now, mint)
}

// owedEnd is the end of the epoch, or what has to be on record before it.
func (s *State) owedEnd(reason string) Draft {
	if first := s.closing(); len(first) > 0 {
		return first[0]
	}
	return s.draftFinalize(reason)
}

// overdue is what must be on record before anything else is decided: items that do not
// fit their session any more, and items, approvals and questions whose time has passed.
func (s *State) overdue(now time.Time) (Draft, bool) {
	if !s.Open() {
		return Draft{}, false
	}
	if ids, reason := s.Queue.Unfitting(); len(ids) > 0 {
		return s.own(events.TypeContinuationInvalidated, events.ContinuationInvalidated{Items: ids, Reason: reason}), true
	}
	if ids := s.Queue.Expired(now); len(ids) > 0 {
		return s.own(events.TypeContinuationExpired, events.ContinuationExpired{Items: ids}), true
	}
	for _, look := range []func(time.Time) (Draft, bool){s.lapsed, s.refusal, s.verdict, s.silentHandler} {
		if d, ok := look(now); ok {
			return d, true
		}
	}
	return Draft{}, false
}

func (s *State) own(t events.Type, data any) Draft {
	d := s.draft(t, data)
	d.Own = true
	return d
}

// owedRelease lets items wait whose time has come, or for which the budget has room.
func (s *State) owedRelease(now time.Time) (Draft, bool) {
	if ids := s.Queue.DueItems(now); len(ids) > 0 {
		return s.own(events.TypeContinuationReleased, events.ContinuationReleased{Items: ids, Reason: "due"}), true
	}
	if ids := s.Queue.Releasable(); len(ids) > 0 {
		return s.own(events.TypeContinuationReleased, events.ContinuationReleased{Items: ids, Reason: "a user's message was taken"}), true
	}
	return Draft{}, false
}

// owedOffer is what the host is to be told next: a steer during a turn, the head of the
// queue otherwise.
func (s *State) owedOffer(now time.Time, mint func() string) (Draft, bool) {
	if _, open := s.OpenOffer(); open || s.Host == nil {
		return Draft{}, false
	}
	if s.running != "" {
		return s.owedSteer(mint)
	}
	if ids := s.Queue.OverBudget(); len(ids) > 0 {
		return s.own(events.TypeContinuationHeld, events.ContinuationHeld{
			Items: ids, Reason: "too many automatic messages in a row without one of a user",
		}), true
	}
	group, ready := s.next()
	switch {
	case len(group) == 0:
		return Draft{}, false
	case group[0].Item.Mode == events.ModeMerge && !s.hostCan(events.CapMerge):
		return s.downgrade(group[0]), true
	case ready.After(now):
		return Draft{}, false
	}
	return s.draftOffer(group, "", mint), true
}

func (s *State) owedSteer(mint func() string) (Draft, bool) {
	e, ok := s.Queue.Steer(s.running)
	switch {
	case !ok:
		return Draft{}, false
	case !s.hostCan(events.CapSteer):
		return s.downgrade(e), true
	}
	if _, aborting := Aborting(s); aborting {
		return Draft{}, false
	}
	return s.draftOffer([]idle.Entry{e}, s.running, mint), true
}

func (s *State) next() ([]idle.Entry, time.Time) { return s.Queue.Next(s.hostCan(events.CapMerge)) }

// deliverable returns from when on a free host is to be offered something.
func (s *State) deliverable() (ready time.Time, ok bool) {
	if _, open := s.OpenOffer(); open || s.Host == nil || s.running != "" {
		return time.Time{}, false
	}
	group, ready := s.next()
	return ready, len(group) > 0
}

func (s *State) draftIdle() Draft {
	d := s.draft(events.TypeSessionIdle, *s.clocks.idle)
	d.Turn, d.Own = s.clocks.idle.Turn, true
	return d
}

func (s *State) draftOffer(group []idle.Entry, into events.TurnID, mint func() string) Draft {
	ids := make([]events.ReceiptID, 0, len(group))
	for _, e := range group {
		ids = append(ids, e.Item.Receipt)
	}
	d := s.draft(events.TypeContinuationOffered, events.ContinuationOffered{
		Offer: events.OfferID(mint()), Items: ids, Host: s.Host.Host, Instance: s.Host.Instance,
		DeadlineMS: idle.OfferDeadline.Milliseconds(), Turn: into,
	})
	d.Turn = into
	return d
}

// nextLook returns the earliest time at which something may be owed.
func (s *State) nextLook(now time.Time) time.Time {
	var next time.Time
	earlier := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	earlier(s.hostGone())
	earlier(s.idleExpiry())
	earlier(s.Queue.NextExpiry())
	earlier(s.approvals.NextExpiry())
	earlier(s.nextVerdict())
	earlier(s.nextSilence())
	earlier(s.Queue.NextDue())
	if ready, ok := s.deliverable(); ok {
		earlier(ready)
	}
	if o, ok := s.OpenOffer(); ok && !s.resends() {
		earlier(o.Due())
	}
	return next
}

// resends reports whether an offer without an answer is sent again: the host says then
// whether it already took it.
func (s *State) resends() bool { return s.hostCan(events.CapIdempotentOffer) }

// Remind returns the open offer to be sent again, once its host has been silent for the
// offer's deadline since it was sent last, and when the next reminder is due; zero when
// no offer is open or its host cannot tell an offer from its repeat (see [Owed]).
func Remind(s *State, sent, now time.Time) (again Effect, next time.Time) {
	o, open := s.OpenOffer()
	if !open || !s.resends() {
		return nil, time.Time{}
	}
	every := max(o.Deadline, time.Second)
	if sent.Before(o.At) {
		sent = o.At
	}
	if now.Before(sent.Add(every)) {
		return nil, sent.Add(every)
	}
	effects := s.sendOffer()
	if len(effects) == 0 {
		return nil, time.Time{}
	}
	return effects[0], now.Add(every)
}
