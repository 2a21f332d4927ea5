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
	switch o, open := s.OpenOffer(); {
	case s.clocks.idle != nil:
		return s.draftIdle(), true
	case open && !s.resends() && due(o.Due(), now):
		return s.draftUnresolved("no answer within " + o.Deadline.String()), true
	case due(s.hostGone(), now):
		return s.draftFinalize(events.ReasonHostGone), true
	case s.idleExpired(now):
		return s.draftFinalize(events.ReasonIdleExpired), true
	}
	if draft, ok := s.owedExit(now, mint); ok {
		return draft, true
	}
	if e, ok := s.deliverable(); ok && !e.NotBefore.After(now) {
		return s.draftOffer(e, mint), true
	}
	return Draft{}, false
}

// deliverable returns the head of the queue if a host is free to take it.
func (s *State) deliverable() (idle.Entry, bool) {
	if _, open := s.OpenOffer(); open || s.Host == nil || s.running != "" {
		return idle.Entry{}, false
	}
	return s.Queue.Head()
}

func (s *State) draftIdle() Draft {
	d := s.draft(events.TypeSessionIdle, *s.clocks.idle)
	d.Turn, d.Own = s.clocks.idle.Turn, true
	return d
}

func (s *State) draftOffer(e idle.Entry, mint func() string) Draft {
	return s.draft(events.TypeContinuationOffered, events.ContinuationOffered{
		Offer: events.OfferID(mint()), Items: []events.ReceiptID{e.Item.Receipt},
		Host: s.Host.Host, Instance: s.Host.Instance, DeadlineMS: idle.OfferDeadline.Milliseconds(),
	})
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
	if e, ok := s.deliverable(); ok {
		earlier(e.NotBefore)
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
