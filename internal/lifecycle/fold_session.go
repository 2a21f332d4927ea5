package lifecycle

import (
	"slices"
	"time"

	"keryx/events"
)

func (s *State) foldRegistered(r events.Record, d events.SessionRegistered) {
	created := !d.Reopened && !s.Exists()
	if d.Carry != nil {
		s.beginEpoch(r, *d.Carry)
	} else {
		s.beginEpoch(r, events.Carry{Owner: d.Owner, CreatedAt: r.Time})
	}
	s.Policy = d.Policy
	s.addNames(d.Names, d.Owner)
	s.clocks.activity = r.Time
	if !d.ForSubmit {
		s.keepAnswer(r, events.Registered{Session: s.Session, Epoch: s.Epoch, Created: created})
	}
}

func (s *State) foldReset(r events.Record, d events.SessionReset) {
	s.Queue.Invalidate(d.Dropped, "dropped by reset: "+d.Reason)
	s.beginEpoch(r, d.Carry)
	s.clocks.activity = r.Time
	s.keepAnswer(r, events.EpochAnswer{Session: s.Session, Epoch: s.Epoch, Reason: d.Reason})
}

func (s *State) foldAliased(r events.Record, d events.SessionAliased) {
	s.addNames(d.Names, d.Owner)
	s.keepAnswer(r, events.Registered{Session: s.Session, Epoch: s.Epoch})
}

// addNames gives names to the session. A name given again in a later epoch is current
// again; a stored id begins the lineage if there is none.
func (s *State) addNames(n events.Names, owner events.PrincipalName) {
	for _, name := range n.Records() {
		given := events.OwnedName{Name: name, Owner: owner, Epoch: s.Epoch, Current: true}
		i := slices.IndexFunc(s.Names, func(o events.OwnedName) bool { return o.Name == name })
		switch {
		case i < 0:
			s.Names = append(s.Names, given)
		case !s.Names[i].Current, name.Kind == events.KindRuntime: // the newest is the live one
			s.Names = append(slices.Delete(s.Names, i, i+1), given)
		}
	}
	s.trimRuntimes()
	if n.StoredSessionID != "" && len(s.Lineage) == 0 {
		s.Lineage = []events.Anchor{{StoredSessionID: n.StoredSessionID, Epoch: s.Epoch}}
	}
	s.Home = or(n.Home, s.Home)
	s.move(&s.Source, n.Source, events.BindSource)
	s.move(&s.Surface, n.Surface, events.BindSurface)
}

// move sets what items may be bound to; those bound to another value do not fit any more.
func (s *State) move(value *string, to string, bound events.Binding) {
	if to == "" || to == *value {
		return
	}
	s.Queue.Unfit(bound, "the session's "+string(bound)+" changed")
	s.clocks.moved = s.LastSequence + 1
	*value = to
}

// trimRuntimes forgets the oldest runtime ids, of which every attach may bring one.
func (s *State) trimRuntimes() {
	live := func(o events.OwnedName) bool { return o.Kind == events.KindRuntime && o.Current }
	n := 0
	for _, o := range s.Names {
		if live(o) {
			n++
		}
	}
	for ; n > MaxRuntimes; n-- {
		i := slices.IndexFunc(s.Names, live)
		s.Names = slices.Delete(s.Names, i, i+1)
	}
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

func (s *State) foldStarted(events.Record, events.SessionStarted) { s.Started = true }

func (s *State) foldAttached(r events.Record, d events.SessionAttached) {
	fence := events.Fence{Generation: d.Generation, Sequence: r.Sequence}
	s.Host = &events.AttachedHost{
		Host: d.Host, Instance: d.Instance, Capabilities: d.Capabilities,
		Fence: fence, LeaseTTLMS: d.LeaseTTLMS,
	}
	if s.Fence.Less(fence) {
		s.Fence = fence
	}
	s.clocks.hostLost = time.Time{}
	s.addNames(events.Names{RuntimeSessionID: d.RuntimeSessionID}, d.Host)
	s.keepAnswer(r, s.attachedAnswer())
}

// attachedAnswer is what the attached host is told.
func (s *State) attachedAnswer() events.Attached {
	return events.Attached{
		Session: s.Session, Epoch: s.Epoch, Fence: s.Host.Fence,
		LeaseTTLMS: s.Host.LeaseTTLMS, Target: s.Policy.Target,
	}
}

func (s *State) foldDetached(r events.Record, d events.SessionDetached) {
	s.clearHost()
	if d.Reason == events.DetachHostLost {
		s.clocks.hostLost = r.Time
	}
	s.keepAnswer(r, events.Done{Sequence: r.Sequence})
}

func (s *State) clearHost() {
	if s.Host != nil {
		s.lastHost, s.Host = s.Host, nil
	}
}

func (s *State) foldIdle(events.Record, events.SessionIdle) { s.clocks.idle = nil }

func (s *State) foldReanchored(r events.Record, d events.SessionReanchored) {
	s.Lineage = append(s.Lineage, events.Anchor{StoredSessionID: d.To, Epoch: s.Epoch, Reason: d.Reason})
	s.addNames(events.Names{StoredSessionID: d.To}, d.Owner)
	s.keepAnswer(r, events.Registered{Session: s.Session, Epoch: s.Epoch})
}

func (s *State) foldFinalized(r events.Record, d events.SessionFinalized) {
	if s.Finalized {
		return // the first reason is final
	}
	s.Finalized, s.Reason, s.exits = true, d.Reason, nil
	s.Queue.Withdraw()
	s.Queue.Invalidate(d.Invalidated, "session finalized: "+d.Reason)
	s.clocks.idle, s.clocks.hostLost = nil, time.Time{}
	s.execs.stopAll(d.Reset)
	if d.Reset {
		return
	}
	s.clearHost()
	if !ownReason(d.Reason) {
		s.keepAnswer(r, events.EpochAnswer{Session: s.Session, Epoch: s.Epoch, Reason: d.Reason})
	}
}
