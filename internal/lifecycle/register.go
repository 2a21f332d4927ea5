package lifecycle

import (
	"slices"

	"keryx/events"
)

// decideFirst registers a session that does not exist yet: all names must be free.
func decideFirst(s *State, c Command, d events.Register) (Decision, error) {
	for _, err := range []error{checkNames(s, c, d.Names), checkApprovers(c, d.Policy)} {
		if err != nil {
			return Decision{}, err
		}
	}
	policy := d.Policy
	if len(policy.Hosts) == 0 && c.Caller.Role == events.RoleHost {
		policy.Hosts = []events.PrincipalName{c.Caller.Name}
	}
	d.Names.TaskID = ""
	return Decision{
		Drafts: []Draft{{Type: events.TypeSessionRegistered, Epoch: 1, Data: events.SessionRegistered{
			Names: d.Names, Owner: c.Caller.Name, Policy: policy,
		}}},
		Names: nameRecords(c, d.Names.Records(), 1),
	}, nil
}

func nameRecords(c Command, names []events.Name, epoch events.Epoch) []events.NameRecord {
	out := make([]events.NameRecord, 0, len(names))
	for _, n := range names {
		out = append(out, events.NameRecord{Name: n, Session: c.Session, Epoch: epoch, Owner: c.Caller.Name})
	}
	return out
}

// checkNames refuses names that are too long, another session's, or another
// principal's. A name that stayed behind in an ended epoch still belongs to its session.
func checkNames(s *State, c Command, names events.Names) error {
	for _, n := range names.Records() {
		if len(n.Value) > MaxNameBytes {
			e := events.Errorf(events.CodeTooLarge, "a name has at most %d bytes", MaxNameBytes)
			e.Path = "/names/" + string(n.Kind)
			return e
		}
		h, ok := hit(c, n)
		if !ok || h.Record == nil {
			continue
		}
		if h.Record.Session != c.Session || !s.Exists() {
			return events.Errorf(events.CodeIdentityConflict, "%s %q belongs to session %s", n.Kind, n.Value, h.Record.Session).
				With("session", string(h.Record.Session)).With("name", n.Value).With("kind", string(n.Kind))
		}
		if h.Record.Owner != c.Caller.Name && c.Caller.Role != events.RoleOperator && !s.isHost(c) {
			return events.Errorf(events.CodeForbidden, "%s %q belongs to another principal", n.Kind, n.Value)
		}
	}
	return nil
}

func hit(c Command, n events.Name) (NameHit, bool) {
	i := slices.IndexFunc(c.Hits, func(h NameHit) bool { return h.Name == n })
	if i < 0 {
		return NameHit{}, false
	}
	return c.Hits[i], true
}

// newNames returns the names the session does not have in epoch.
func (s *State) newNames(c Command, names events.Names, epoch events.Epoch) []events.Name {
	var out []events.Name
	for _, n := range names.Records() {
		if h, ok := hit(c, n); ok && h.Record != nil && (n.Kind == events.KindGatewayKey || h.Record.Epoch == epoch) {
			continue
		}
		if slices.ContainsFunc(s.Names, func(o events.OwnedName) bool {
			return o.Name == n && (n.Kind == events.KindGatewayKey || o.Epoch == epoch)
		}) {
			continue
		}
		out = append(out, n)
	}
	return out
}

// register agrees with what is known, gives the names that are new, and reopens a
// session whose epoch has ended.
func (s *State) register(c Command, d events.Register) (Decision, error) {
	for _, err := range []error{checkNames(s, c, d.Names), checkApprovers(c, d.Policy)} {
		if err != nil {
			return Decision{}, err
		}
	}
	if !s.knowsOne(c) {
		if err := s.mayChange(c); err != nil {
			return Decision{}, err
		}
	}
	d.Names.TaskID = ""
	if s.Finalized {
		return s.reopenNamed(c, d)
	}
	return s.addAliases(c, d.Names)
}

// knowsOne reports whether one of the looked-up names is this session's.
func (s *State) knowsOne(c Command) bool {
	return slices.ContainsFunc(c.Hits, func(h NameHit) bool {
		return h.Record != nil && h.Record.Session == s.Session
	})
}

func (s *State) alias(c Command, d events.Alias) (Decision, error) {
	for _, err := range []error{s.mayChange(c), s.checkVia(c.Via), s.checkOpen(), checkNames(s, c, d.Names)} {
		if err != nil {
			return Decision{}, err
		}
	}
	d.Names.TaskID = ""
	return s.addAliases(c, d.Names)
}

// addAliases appends what is new of names, or answers at once if nothing is.
func (s *State) addAliases(c Command, names events.Names) (Decision, error) {
	fresh := s.newNames(c, names, s.Epoch)
	add := pick(names, fresh)
	add.Home, add.Source, add.Surface = changed(names.Home, s.Home), changed(names.Source, s.Source), changed(names.Surface, s.Surface)
	if add == (events.Names{}) {
		return answered(events.Registered{Session: s.Session, Epoch: s.Epoch})
	}
	if err := s.roomFor(len(fresh)); err != nil {
		return Decision{}, err
	}
	dec, err := one(s.draft(events.TypeSessionAliased, events.SessionAliased{Names: add, Owner: c.Caller.Name}))
	dec.Names = nameRecords(c, fresh, s.Epoch)
	return dec, err
}

func changed(asked, known string) string {
	if asked == known {
		return ""
	}
	return asked
}

func (s *State) roomFor(n int) error {
	current := 0
	for _, o := range s.Names {
		if o.Current && o.Kind != events.KindRuntime {
			current++
		}
	}
	if n > 0 && current+n > MaxNames {
		return events.Errorf(events.CodeTooLarge, "session %s has %d names; %d are the most", s.Session, current, MaxNames)
	}
	return nil
}

// pick returns the fields of names that are among kept.
func pick(names events.Names, kept []events.Name) events.Names {
	var out events.Names
	for _, n := range kept {
		switch n.Kind {
		case events.KindGatewayKey:
			out.GatewaySessionKey = names.GatewaySessionKey
		case events.KindStored:
			out.StoredSessionID = names.StoredSessionID
		case events.KindAgent:
			out.SessionID = names.SessionID
		case events.KindRuntime:
			out.RuntimeSessionID = names.RuntimeSessionID
		}
	}
	return out
}

// reopenNamed opens the next epoch of a finalized session by a registration. A policy
// that says nothing leaves the old one.
func (s *State) reopenNamed(c Command, d events.Register) (Decision, error) {
	fresh := s.newNames(c, d.Names, s.Epoch+1)
	if err := s.roomFor(len(fresh)); err != nil {
		return Decision{}, err
	}
	draft := s.reopen(c)
	reg := draft.Data.(events.SessionRegistered)
	reg.Names = pick(d.Names, fresh)
	reg.Names.Home, reg.Names.Source, reg.Names.Surface = d.Names.Home, d.Names.Source, d.Names.Surface
	if !zeroPolicy(d.Policy) {
		reg.Policy = kept(d.Policy, s.Policy)
	}
	draft.Data = reg
	return Decision{Drafts: []Draft{draft}, Names: nameRecords(c, fresh, s.Epoch+1)}, nil
}

// kept is a policy given at a reopening, with what an operator may have set before and
// it says nothing of.
func kept(given, before events.Policy) events.Policy {
	given.Peers = given.Peers || before.Peers
	given.ToolDefault = or(given.ToolDefault, before.ToolDefault)
	if given.Approvers == nil {
		given.Approvers = before.Approvers
	}
	return given
}

func zeroPolicy(p events.Policy) bool {
	return len(p.Approvers) == 0 && p.ToolDefault == "" && len(p.Hosts) == 0 && p.IdleTTLMS == 0 && p.HostGoneMS == 0 && p.Lifetime == "" && p.Target == "" && !p.Peers
}

// reopen drafts the first event of the epoch after a finalized one.
func (s *State) reopen(c Command) Draft {
	carry := s.carry(c.Now)
	return Draft{Type: events.TypeSessionRegistered, Epoch: s.Epoch + 1, Data: events.SessionRegistered{
		Owner: c.Caller.Name, Policy: s.Policy, Reopened: true, Carry: &carry,
	}}
}
