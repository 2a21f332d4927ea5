package lifecycle

import (
	"slices"
	"time"

	"keryx/events"
)

func (s *State) attach(c Command, d events.Attach) (Decision, error) {
	if c.Caller.Role != events.RoleHost || !s.wants(c.Caller.Name, c.DefaultHosts) {
		return Decision{}, s.forbidden(c)
	}
	if err := s.checkOpen(); err != nil {
		return Decision{}, err
	}
	if s.Host != nil {
		return s.attachAgain(c, d)
	}
	ttl := or(millis(d.LeaseTTLMS), DefaultLeaseTTL)
	if ttl < MinLeaseTTL {
		e := events.Errorf(events.CodeInvalid, "a lease lasts at least %s", MinLeaseTTL)
		e.Path = "/lease_ttl_ms"
		return Decision{}, e
	}
	dec, _ := one(s.draft(events.TypeSessionAttached, events.SessionAttached{
		Host: c.Caller.Name, Instance: d.Instance, Capabilities: d.Capabilities,
		LeaseTTLMS: ttl.Milliseconds(), RuntimeSessionID: d.RuntimeSessionID, Generation: c.Generation,
	}))
	return s.nameRuntime(c, d, dec)
}

// nameRuntime gives the session the host's runtime id, if the id was looked up.
func (s *State) nameRuntime(c Command, d events.Attach, dec Decision) (Decision, error) {
	names := events.Names{RuntimeSessionID: d.RuntimeSessionID}
	if err := checkNames(s, c, names); err != nil {
		return Decision{}, err
	}
	var fresh []events.Name
	for _, n := range s.newNames(c, names, s.Epoch) {
		if _, looked := hit(c, n); looked {
			fresh = append(fresh, n)
		}
	}
	dec.Names = nameRecords(c, fresh, s.Epoch)
	return dec, nil
}

// attachAgain answers the instance that is attached already with its fence, and tells
// it of an open offer it does not know.
func (s *State) attachAgain(c Command, d events.Attach) (Decision, error) {
	if s.Host.Host != c.Caller.Name || s.Host.Instance != d.Instance {
		return Decision{}, events.Errorf(events.CodeAlreadyAttached, "session %s is driven by host %q", s.Session, s.Host.Host).
			With("host", string(s.Host.Host)).With("instance", string(s.Host.Instance))
	}
	dec, err := answered(s.attachedAnswer())
	if o, ok := s.OpenOffer(); ok && !slices.Contains(d.KnownOffers, o.ID) {
		dec.Effects = s.sendOffer()
	}
	return dec, err
}

func (s *State) detach(c Command, d events.Detach) (Decision, error) {
	if err := s.checkFence(c, d.Fence); err != nil {
		return Decision{}, err
	}
	if s.running != "" {
		return Decision{}, events.Errorf(events.CodeBusy, "turn %s runs; end it first", s.running).
			With("turn", string(s.running))
	}
	if _, ok := s.OpenOffer(); ok {
		return step(s.draftRequeue("detached", 0))
	}
	return one(s.draftDetach(events.DetachRequested))
}

func (s *State) draftDetach(reason events.DetachReason) Draft {
	return s.draft(events.TypeSessionDetached, events.SessionDetached{
		Host: s.Host.Host, Instance: s.Host.Instance, Reason: reason,
	})
}

func (s *State) draftRequeue(reason string, delay time.Duration) Draft {
	o, _ := s.OpenOffer()
	return s.draft(events.TypeContinuationRequeued, events.ContinuationRequeued{
		Offer: o.ID, Items: o.Items, Reason: reason, DelayMS: delay.Milliseconds(),
	})
}

func (s *State) draftUnresolved(reason string) Draft {
	o, _ := s.OpenOffer()
	return s.draft(events.TypeContinuationUnresolved, events.ContinuationUnresolved{
		Offer: o.ID, Items: o.Items, Reason: reason,
	})
}

// reanchor moves the end of the lineage to a new stored id.
func (s *State) reanchor(c Command, d events.Reanchor) (Decision, error) {
	if err := s.checkFence(c, d.Fence); err != nil {
		return Decision{}, err
	}
	from := s.stored()
	if from == d.StoredSessionID {
		return answered(events.Registered{Session: s.Session, Epoch: s.Epoch})
	}
	if slices.ContainsFunc(s.Lineage, func(a events.Anchor) bool { return a.StoredSessionID == d.StoredSessionID }) {
		return Decision{}, events.Errorf(events.CodeIdentityConflict,
			"stored id %q is an earlier link of the session's lineage", d.StoredSessionID)
	}
	names := events.Names{StoredSessionID: d.StoredSessionID}
	if err := checkNames(s, c, names); err != nil {
		return Decision{}, err
	}
	fresh := s.newNames(c, names, s.Epoch)
	if err := s.roomFor(len(fresh)); err != nil {
		return Decision{}, err
	}
	dec, err := one(s.draft(events.TypeSessionReanchored, events.SessionReanchored{
		From: from, To: d.StoredSessionID, Reason: d.Reason, Owner: c.Caller.Name,
	}))
	dec.Names = nameRecords(c, fresh, s.Epoch)
	return dec, err
}

// stored returns the stored id the session is at; empty when unknown.
func (s *State) stored() events.StoredSessionID {
	if len(s.Lineage) == 0 {
		return ""
	}
	return s.Lineage[len(s.Lineage)-1].StoredSessionID
}
