package lifecycle

import (
	"time"

	"keryx/events"
)

// reset ends the open epoch, if one is open, and opens the next.
func (s *State) reset(c Command, d events.Reset) (Decision, error) {
	if err := s.checkEnding(c, d.Reason); err != nil {
		return Decision{}, err
	}
	reason := or(d.Reason, events.ReasonReset)
	if s.running != "" {
		return s.interruptFor("reset: " + reason), nil
	}
	return s.ending(s.resetDecision(c, reason))
}

func (s *State) resetDecision(c Command, reason string) Decision {
	carry := s.carry(c.Now)
	var dropped []events.ReceiptID
	var rest []events.Item
	var drafts []Draft
	if s.Open() {
		carry.Host = s.Host
		carry.Items, rest, dropped = s.carriedItems()
		drafts = append(drafts, s.draft(events.TypeSessionFinalized, events.SessionFinalized{Reason: reason, Reset: true}))
	}
	next := s.draft(events.TypeSessionReset, events.SessionReset{Reason: reason, Carry: carry, Dropped: dropped})
	next.Epoch = s.Epoch + 1
	drafts = append(drafts, next)
	for _, it := range rest {
		q := s.draft(events.TypeContinuationQueued, events.ContinuationQueued{Item: it})
		q.Epoch = s.Epoch + 1
		drafts = append(drafts, q)
	}
	return Decision{Drafts: drafts}
}

// carriedItems says which items go to the next epoch with the carry, which in events
// of their own because the carry is full, and which are dropped.
func (s *State) carriedItems() (carried, rest []events.Item, dropped []events.ReceiptID) {
	var all []events.Item
	for _, it := range s.Queue.Waiting() {
		if it.OnReset == events.OnResetCarry {
			all = append(all, it)
		} else {
			dropped = append(dropped, it.Receipt)
		}
	}
	n := split(all)
	carried, rest = all[:n], all[n:]
	for len(rest) > maxBatch-2 {
		last := len(rest) - 1
		dropped, rest = append(dropped, rest[last].Receipt), rest[:last]
	}
	return carried, rest, dropped
}

func (s *State) finalize(c Command, d events.Finalize) (Decision, error) {
	if err := s.checkEnding(c, d.Reason); err != nil {
		return Decision{}, err
	}
	if s.Finalized {
		return Decision{}, events.Errorf(events.CodeAlreadyFinalized, "epoch %d of session %s has ended: %s", s.Epoch, s.Session, s.Reason).
			With("reason", s.Reason).With("epoch", s.Epoch.String())
	}
	if s.running != "" {
		return s.interruptFor("finalize: " + d.Reason), nil
	}
	return s.ending(Decision{Drafts: []Draft{s.draftFinalize(or(d.Reason, "finalized"))}})
}

// forget ends what is open, so that the session can be removed; the answer says that it
// can be.
func (s *State) forget(d events.Forget) (Decision, error) {
	switch {
	case s.running != "":
		return s.interruptFor("removed: " + d.Reason), nil
	case s.Open():
		return step(s.draftOwnFinalize("removed: " + d.Reason))
	case len(s.execs.open) > 0:
		return Decision{}, events.Errorf(events.CodeBusy, "%d execs of session %s are being stopped", len(s.execs.open), s.Session)
	}
	return answered(events.Done{Sequence: s.LastSequence})
}

// checkEnding refuses callers without the right, names of epochs before this one, and
// the reasons by which only the bus ends an epoch.
func (s *State) checkEnding(c Command, reason string) error {
	if err := s.mayEnd(c); err != nil {
		return err
	}
	if c.Via != nil && c.Via.Epoch != s.Epoch {
		if err := s.checkVia(c.Via); err != nil {
			return err
		}
	}
	if ownReason(reason) {
		e := events.Errorf(events.CodeInvalid, "%q is a reason of the bus itself", reason)
		e.Path = "/reason"
		return e
	}
	return nil
}

func (s *State) draftFinalize(reason string) Draft {
	var waiting []events.ReceiptID
	for _, it := range s.Queue.Waiting() {
		waiting = append(waiting, it.Receipt)
	}
	return s.draft(events.TypeSessionFinalized, events.SessionFinalized{Reason: reason, Invalidated: waiting})
}

func (s *State) draftOwnFinalize(reason string) Draft {
	d := s.draftFinalize(reason)
	d.Own = true
	return d
}

// idleExpiry returns when the open epoch ends by idleness; zero for never or not as
// things stand: a turn, an exec and whatever waits keep it open.
func (s *State) idleExpiry() time.Time {
	if !s.Open() || s.Policy.IdleTTLMS <= 0 || s.running != "" || s.Queue.Kept() > 0 || !s.execs.idle() {
		return time.Time{}
	}
	return s.clocks.activity.Add(millis(s.Policy.IdleTTLMS))
}

func (s *State) idleExpired(now time.Time) bool { return due(s.idleExpiry(), now) }

// hostGone returns when the open epoch ends because its lost host did not come back.
func (s *State) hostGone() time.Time {
	if !s.Open() || s.Policy.HostGoneMS <= 0 || s.Host != nil || s.clocks.hostLost.IsZero() {
		return time.Time{}
	}
	return s.clocks.hostLost.Add(millis(s.Policy.HostGoneMS))
}

func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

func (s *State) interruptFor(reason string) Decision {
	t := s.Running()
	return Decision{Interrupt: &Interruption{Turn: t.Turn, Host: t.Host, Instance: t.Instance, Reason: reason}}
}
