package lifecycle

import (
	"slices"

	"keryx/events"
)

// wants reports whether the session lets this host attach.
func (s *State) wants(host events.PrincipalName, defaults []events.PrincipalName) bool {
	if len(s.Policy.Hosts) > 0 {
		return slices.Contains(s.Policy.Hosts, host)
	}
	return slices.Contains(defaults, host)
}

// isHost reports whether the caller is the attached host or may become it.
func (s *State) isHost(c Command) bool {
	return c.Caller.Role == events.RoleHost &&
		(s.Host != nil && s.Host.Host == c.Caller.Name || s.wants(c.Caller.Name, c.DefaultHosts))
}

// owns reports whether the caller registered the session or gave one of its names.
func (s *State) owns(caller events.PrincipalName) bool {
	return s.Owner == caller || slices.ContainsFunc(s.Names, func(n events.OwnedName) bool {
		return n.Owner == caller
	})
}

// mayChange is the right to give names and to end epochs: operators, gateways that own
// a name of the session, and its hosts.
func (s *State) mayChange(c Command) error {
	switch c.Caller.Role {
	case events.RoleOperator:
		return nil
	case events.RoleGateway:
		if s.owns(c.Caller.Name) {
			return s.mayNameVia(c)
		}
	case events.RoleHost:
		if s.isHost(c) {
			return nil
		}
	}
	return s.forbidden(c)
}

// mayEnd is mayChange for reset and finalize: of the hosts only the attached one.
func (s *State) mayEnd(c Command) error {
	if c.Caller.Role == events.RoleHost && (s.Host == nil || s.Host.Host != c.Caller.Name) {
		return s.forbidden(c)
	}
	return s.mayChange(c)
}

// mayNameVia refuses a gateway or host that names a session by somebody else's name.
func (s *State) mayNameVia(c Command) error {
	if c.Via == nil || c.Via.Owner == c.Caller.Name || c.Caller.Role == events.RoleOperator || s.isHost(c) {
		return nil
	}
	return events.Errorf(events.CodeForbidden, "the name %q belongs to another principal", c.Via.Value)
}

func (s *State) forbidden(c Command) error {
	return events.Errorf(events.CodeForbidden, "%s %q has no right to do this to session %s",
		c.Caller.Role, c.Caller.Name, s.Session)
}

// checkVia refuses a name that belongs to an epoch which has ended. Gateway keys
// outlive epochs.
func (s *State) checkVia(via *events.OwnedName) error {
	if via == nil || via.Kind == events.KindGatewayKey || via.Epoch == s.Epoch && s.Open() {
		return nil
	}
	return events.Errorf(events.CodeEpochEnded, "the name %q belongs to epoch %d, which has ended; the session is at epoch %d",
		via.Value, via.Epoch, s.Epoch).With("epoch", s.Epoch.String())
}

// checkFence refuses whoever is not the attached host with the current fence.
func (s *State) checkFence(c Command, fence events.Fence) error {
	if s.Host != nil && s.Host.Host == c.Caller.Name && s.Host.Fence == fence {
		return nil
	}
	return s.staleFence(fence)
}

func (s *State) staleFence(fence events.Fence) error {
	current := ""
	if s.Host != nil {
		current = s.Host.Fence.String()
	}
	return events.Errorf(events.CodeStaleFence, "fence %q does not drive session %s", fence, s.Session).
		With("current", current)
}

// checkOpen refuses what needs an open epoch.
func (s *State) checkOpen() error {
	if s.Open() {
		return nil
	}
	return events.Errorf(events.CodeEpochEnded, "epoch %d of session %s has ended: %s", s.Epoch, s.Session, s.Reason).
		With("epoch", s.Epoch.String()).With("reason", s.Reason)
}
