package setup

import (
	"slices"
	"strings"
	"time"

	"keryx/events"
)

// State is a profile's packages and setup runs as the log says. The zero value has none.
// It is changed by [State.Fold] alone and is not safe for concurrent use.
type State struct {
	packages map[events.PackageKey]*pack
	runs     map[events.RunID]*run
	order    []events.RunID // oldest first
}

// pack is one package, kept after its removal for what it left.
type pack struct {
	events.Package
	removed   bool
	enabled   bool
	changedAt time.Time
	toggles   []toggle
	installed *events.PackageInstall
	// asks are the sessions that wait for the next run that succeeds, one each.
	asks []ask
	// consents are the revisions that were consented to and not used up.
	consents map[events.Revision]bool
	last     events.RunID // the run planned last
}

// toggle is one change of what is enabled.
type toggle struct {
	at events.Sequence
	on bool
}

// ask is a session that waits, and the run with which it began to.
type ask struct {
	events.SetupAsk
	run events.RunID
}

// run is one run of a setup.
type run struct {
	plan     events.SetupPlan
	summary  events.SetupSummary
	executor events.PrincipalName
	instance events.Instance
	// tell are the sessions that are still to be told of the success.
	tell []events.SetupAsk
}

// keptToggles is how many changes are remembered per package. A session that was
// attached before all of them counts as before the oldest.
const keptToggles = 64

// keptRuns is how many runs that are over keep their list of files in memory.
const keptRuns = 100

func (s *State) pack(key events.PackageKey) *pack {
	p := s.packages[key]
	if p == nil || p.removed {
		return nil
	}
	return p
}

// known are the packages that were not removed, by key.
func (s *State) known() []*pack {
	out := make([]*pack, 0, len(s.packages))
	for _, p := range s.packages {
		if !p.removed {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *pack) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return out
}

// find resolves a key or a name. An exact key wins over a name; a name that several
// packages have is refused with the sources of all of them.
func (s *State) find(ref string) (*pack, error) {
	if p := s.pack(events.PackageKey(ref)); p != nil {
		return p, nil
	}
	var found []*pack
	for _, p := range s.known() {
		if p.Name == ref {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		for _, p := range s.known() {
			if Normalise(p.Name) == ref {
				found = append(found, p)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, events.Errorf(events.CodeUnknownPackage, "no package has the key or name %q", ref)
	}
	var each []string
	for _, p := range found {
		each = append(each, string(p.Key)+" from "+p.Source)
	}
	return nil, events.Errorf(events.CodeAmbiguousName, "%q is the name of several packages: %s; use the key", ref, strings.Join(each, ", "))
}

// findAll resolves several, or none of them.
func (s *State) findAll(refs []string) ([]*pack, error) {
	if len(refs) == 0 {
		return nil, &events.Error{Code: events.CodeInvalid, Path: "/packages", Message: "name at least one package"}
	}
	var out []*pack
	for _, ref := range refs {
		p, err := s.find(ref)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// stateOf is where a run stands. Consent is to a revision: it serves every run that is
// planned with it, until one succeeds.
func (s *State) stateOf(x *run) events.SetupState {
	if p := s.pack(x.plan.Key); x.summary.State == events.SetupStatePlanned && p != nil && p.consents[x.plan.Revision] {
		return events.SetupStateConsented
	}
	return x.summary.State
}

func (s *State) summary(x *run) events.SetupSummary {
	out := x.summary
	out.State = s.stateOf(x)
	return out
}

// active is the package's run that may have processes, or nil.
func (s *State) active(key events.PackageKey) *run {
	for _, id := range s.order {
		if r := s.runs[id]; r.plan.Key == key && r.summary.State.Active() {
			return r
		}
	}
	return nil
}

func refs(packs []*pack) []events.PackageRef {
	out := make([]events.PackageRef, 0, len(packs))
	for _, p := range packs {
		out = append(out, events.PackageRef{Key: p.Key, Revision: p.Revision})
	}
	return out
}

// InEffect reports whether a package is in effect for a session whose open epoch, or
// whose host, began at a sequence: as it was enabled then.
func (s *State) InEffect(key events.PackageKey, since events.Sequence) bool {
	p := s.packages[key]
	if p == nil {
		return false
	}
	on := false
	for _, t := range p.toggles {
		if t.at < since {
			on = t.on
		}
	}
	return on
}
