package lifecycle

import (
	"keryx/events"
	"keryx/internal/idle"
)

// capabilityOf is what a host must have declared for a mode; others need nothing.
var capabilityOf = map[events.Mode]events.Capability{
	events.ModeMerge:     events.CapMerge,
	events.ModeSteer:     events.CapSteer,
	events.ModeInterrupt: events.CapInterrupt,
}

// inMode puts an item into its mode, or into the first allowed downgrade that can be
// done. While no host is attached every mode can: the item waits, and what its host
// turns out not to do is downgraded then.
func (s *State) inMode(it events.Item) (events.Item, error) {
	asked := it.Mode
	if s.refuses(asked) == nil || !it.NotBefore.IsZero() && asked != events.ModeReject {
		return it, nil
	}
	for _, m := range it.Allow {
		if s.refuses(m) == nil {
			it.Mode, it.Asked = m, asked
			return it, nil
		}
	}
	err := s.refuses(asked)
	for _, m := range it.Allow {
		if m == events.ModeReject {
			err = s.refuses(m)
		}
	}
	return it, err
}

// refuses says why a mode cannot be done as things stand, or nil.
func (s *State) refuses(m events.Mode) error {
	_, offering := s.OpenOffer()
	busy := s.running != "" || offering
	if m == events.ModeReject {
		if !busy {
			return nil
		}
		return events.Errorf(events.CodeBusy, "turn %s runs", s.running).With("turn", string(s.running))
	}
	if need, ok := capabilityOf[m]; ok && s.Host != nil && !s.hostCan(need) && (busy || m == events.ModeMerge) {
		e := events.Errorf(events.CodeUnsupported, "%s, and no allowed downgrade can be done", s.incapable(m))
		e.Path = "/mode"
		return e
	}
	return nil
}

func (s *State) incapable(m events.Mode) string {
	host := events.PrincipalName("")
	if s.Host != nil {
		host = s.Host.Host
	}
	return "host " + string(host) + " cannot " + string(m)
}

// downgrade returns what an item becomes whose mode its host cannot do: its sender is
// not asked any more, so that what is not allowed waits as an ordinary item.
func (s *State) downgrade(e idle.Entry) Draft {
	to := events.ModeEnqueue
	for _, m := range e.Item.Allow {
		need, special := capabilityOf[m]
		if m != events.ModeReject && (!special || s.hostCan(need)) {
			to = m
			break
		}
	}
	return s.draft(events.TypeContinuationDowngraded, events.ContinuationDowngraded{
		Receipt: e.Item.Receipt, From: e.Item.Mode, To: to, Reason: s.incapable(e.Item.Mode),
	})
}

// Aborting returns the turn that must be aborted because an item of mode interrupt waits
// for its end.
func Aborting(s *State) (i Interruption, ok bool) {
	e, ok := s.Queue.Interrupts(s.running)
	t := s.Running()
	if !ok || t == nil {
		return Interruption{}, false
	}
	return Interruption{
		Turn: t.Turn, Host: t.Host, Instance: t.Instance,
		Reason: "a message of " + string(e.Item.Sender) + " interrupts",
	}, true
}
