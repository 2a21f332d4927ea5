package lifecycle

import (
	"slices"

	"keryx/events"
	"keryx/internal/idle"
)

// accept makes an open offer the running turn. The epoch's first is preceded by
// session.started.
func (s *State) accept(c Command, d events.Accept) (Decision, error) {
	o, open := s.OpenOffer()
	open = open && o.ID == d.Offer
	if t, ok := s.turns[d.Turn]; ok {
		if open && o.Turn == d.Turn && t.Running() {
			return s.acceptSteer(c, d, o)
		}
		return s.acceptAgain(c, d, t)
	}
	if err := s.checkFence(c, d.Fence); err != nil {
		return Decision{}, err
	}
	switch {
	case !open:
		return Decision{}, unknownOffer(d.Offer)
	case o.Turn != "":
		e := events.Errorf(events.CodeInvalid, "offer %s is for turn %s", o.ID, o.Turn)
		e.Path = "/turn"
		return Decision{}, e
	}
	if !s.Started {
		start := s.draft(events.TypeSessionStarted, events.SessionStarted{Host: c.Caller.Name})
		start.Own = true
		return step(start)
	}
	draft := s.draft(events.TypeTurnStarted, events.TurnStarted{
		Turn: d.Turn, Offer: o.ID, Items: o.Items, Host: s.Host.Host, Instance: s.Host.Instance, TaskID: d.TaskID,
	})
	draft.Turn = d.Turn
	return one(draft)
}

// acceptSteer puts the items of a steer into the running turn, with which they settle.
func (s *State) acceptSteer(c Command, d events.Accept, o idle.Offer) (Decision, error) {
	if err := s.checkFence(c, d.Fence); err != nil {
		return Decision{}, err
	}
	draft := s.draft(events.TypeTurnSteered, events.TurnSteered{Turn: d.Turn, Offer: o.ID, Items: o.Items})
	draft.Turn = d.Turn
	return one(draft)
}

// acceptAgain answers an accept whose answer was lost. A turn that has ended since must
// not begin.
func (s *State) acceptAgain(c Command, d events.Accept, t TurnEntry) (Decision, error) {
	switch {
	case t.Host != c.Caller.Name || t.Fence != d.Fence:
		return Decision{}, s.staleFence(d.Fence)
	case t.Running() && slices.Contains(t.Steers, d.Offer):
	case t.Offer != d.Offer && s.hostCan(events.CapSteer):
		return Decision{}, unknownOffer(d.Offer) // a steer that was withdrawn
	case t.Offer != d.Offer:
		e := events.Errorf(events.CodeInvalid, "turn %s took another offer", t.Turn)
		e.Path = "/turn"
		return Decision{}, e
	case !t.Running():
		return Decision{}, alreadyEnded(t)
	}
	return answered(events.Accepted{Turn: t.Turn, Epoch: t.Epoch})
}

func unknownOffer(id events.OfferID) error {
	return events.Errorf(events.CodeUnknownOffer, "offer %s is not open", id)
}

func alreadyEnded(t TurnEntry) error {
	return events.Errorf(events.CodeAlreadyEnded, "turn %s has ended: %s", t.Turn, t.Outcome).
		With("outcome", string(t.Outcome))
}

func (s *State) decline(c Command, d events.Decline) (Decision, error) {
	if err := s.checkFence(c, d.Fence); err != nil {
		return Decision{}, err
	}
	o, ok := s.OpenOffer()
	if !ok || o.ID != d.Offer {
		return Decision{}, unknownOffer(d.Offer)
	}
	if o.Turn != "" { // it waits for the turn's end, and is not offered to this turn again
		again := s.draftRequeue(or(d.Reason, "declined"), 0)
		data := again.Data.(events.ContinuationRequeued)
		data.Declined = true
		again.Data = data
		return one(again)
	}
	n := 0
	for _, id := range o.Items {
		n = max(n, s.Queue.Declines(id))
	}
	return one(s.draftRequeue(or(d.Reason, "declined"), idle.DeclineDelay(n+1)))
}

func (s *State) end(c Command, d events.End) (Decision, error) {
	t, ok := s.turns[d.Turn]
	if !ok {
		return Decision{}, unknownTurn(d.Turn)
	}
	if t.Host != c.Caller.Name || t.Fence != d.Fence {
		return Decision{}, s.staleFence(d.Fence)
	}
	if !t.Running() {
		return s.endAgain(d, t)
	}
	if o, ok := s.OpenOffer(); ok && o.Turn == t.Turn {
		return step(s.draftRequeue("the turn ended", 0))
	}
	return one(s.draftEnd(t, events.TurnEnded{
		Outcome: d.Outcome, Reply: d.Reply, ReplyTruncated: d.ReplyTruncated,
		Error: d.Error, BackgroundRunning: d.BackgroundRunning,
	}))
}

func unknownTurn(id events.TurnID) error {
	return events.Errorf(events.CodeUnknownTurn, "no turn %q", id)
}

// endAgain decides on the report of a turn that has ended. Of a lost one the first
// report is kept, for the record only.
func (s *State) endAgain(d events.End, t TurnEntry) (Decision, error) {
	switch {
	case t.Outcome == d.Outcome:
		return answered(events.Ended{Turn: t.Turn, Outcome: t.Outcome})
	case t.Outcome != events.OutcomeLost:
		return Decision{}, alreadyEnded(t)
	case t.LateSequence != 0:
		return answered(lateAnswer(t))
	}
	draft := s.draft(events.TypeTurnReportedLate, events.TurnReportedLate{
		Turn: d.Turn, Outcome: d.Outcome, Reply: d.Reply, Error: d.Error,
	})
	draft.Turn, draft.SessionFence = d.Turn, d.Fence
	return one(draft)
}

// draftEnd ends a running turn and settles its items. Its host may count the background
// execs of the bus among its own jobs, or not know of them.
func (s *State) draftEnd(t TurnEntry, e events.TurnEnded) Draft {
	e.Turn, e.Settled, e.Pending = t.Turn, t.Items, s.Queue.Pending()
	e.BackgroundRunning = max(e.BackgroundRunning, s.backgroundRunning())
	draft := s.draft(events.TypeTurnEnded, e)
	draft.Turn = t.Turn
	return draft
}

// lose ends a running turn as lost; a steer that it did not take goes back first.
func (s *State) lose(t TurnEntry, why string) Draft {
	if o, ok := s.OpenOffer(); ok && o.Turn == t.Turn {
		return s.draftRequeue("the turn ended", 0)
	}
	return s.draftLost(t, why)
}

func (s *State) draftLost(t TurnEntry, why string) Draft {
	return s.draftEnd(t, events.TurnEnded{Outcome: events.OutcomeLost, Error: why})
}

// interrupt aborts the running turn and answers once it has ended. When none runs, a
// turn that ended after the command was sent is what it meant.
func (s *State) interrupt(c Command, d events.Interrupt) (Decision, error) {
	if err := s.mayEnd(c); err != nil {
		return Decision{}, err
	}
	if err := s.checkVia(c.Via); err != nil {
		return Decision{}, err
	}
	if d.Turn != "" {
		return s.interruptTurn(d)
	}
	if s.running != "" {
		return s.interruptFor(d.Reason), nil
	}
	t, ok := s.turns[s.clocks.lastTurn]
	if ok && !c.Sent.IsZero() && !t.EndedAt.Before(c.Sent) {
		return answered(events.Ended{Turn: t.Turn, Outcome: t.Outcome})
	}
	return Decision{}, events.Errorf(events.CodeUnknownTurn, "no turn is running")
}

func (s *State) interruptTurn(d events.Interrupt) (Decision, error) {
	t, ok := s.turns[d.Turn]
	switch {
	case !ok:
		return Decision{}, unknownTurn(d.Turn)
	case t.Running():
		return s.interruptFor(d.Reason), nil
	}
	return answered(events.Ended{Turn: t.Turn, Outcome: t.Outcome})
}
