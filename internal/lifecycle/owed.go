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
	if o, ok := s.OpenOffer(); ok {
		for at := o.Due(); ; at = at.Add(max(o.Deadline, time.Second)) {
			if at.After(now) || !s.resends() {
				earlier(at)
				break
			}
		}
	}
	return next
}

// resends reports whether an offer without an answer is sent again: the host says then
// whether it already took it.
func (s *State) resends() bool { return s.hostCan(events.CapIdempotentOffer) }

// Resend returns what to send again of an offer that was sent last at a time and has
// had no answer; nil when it is not due, no offer is open, or the host cannot tell one
// offer from its repeat.
func (s *State) Resend(sent, now time.Time) []Effect {
	o, open := s.OpenOffer()
	if !open || !s.resends() || now.Sub(sent) < max(o.Deadline, time.Second) {
		return nil
	}
	return s.sendOffer()
}
