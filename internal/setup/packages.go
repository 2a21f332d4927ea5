package setup

import (
	"path/filepath"
	"slices"

	"keryx/events"
)

// Outcome is what a command comes to. The zero value is nothing to do.
type Outcome struct {
	// Scope, Type and Data are the event to append; Type is empty for none.
	Scope events.Scope
	Type  events.Type
	Data  any
	// Answer is the command's, as it is after the event.
	Answer any
}

func happened(scope events.Scope, t events.Type, data, answer any) (Outcome, error) {
	return Outcome{Scope: scope, Type: t, Data: data, Answer: answer}, nil
}

func answered(v any) (Outcome, error) { return Outcome{Answer: v}, nil }

// Add decides on making a package known. The same revision again is no event. A key that
// another source or directory has is refused with both named.
func (s *State) Add(c events.AddPackage) (Outcome, error) {
	if err := checkPackage(c.Package); err != nil {
		return Outcome{}, err
	}
	answer := events.PackageRefs{Packages: []events.PackageRef{{Key: c.Package.Key, Revision: c.Package.Revision}}}
	cur := s.pack(c.Package.Key)
	if cur == nil {
		return happened(events.ScopeProfile, events.TypePackageAdded,
			events.PackageAdded{Package: c.Package, Enabled: c.Package.DefaultEnabled}, answer)
	}
	if cur.Source != c.Package.Source || Normalise(cur.Name) != Normalise(c.Package.Name) {
		return Outcome{}, events.Errorf(events.CodeIdentityConflict,
			"the key %s of %q from %q is that of %q from %q already", c.Package.Key, c.Package.Name, c.Package.Source, cur.Name, cur.Source)
	}
	if cur.Revision == c.Package.Revision && cur.Dir == c.Package.Dir {
		return answered(answer)
	}
	if cur.Dir != c.Package.Dir && !c.Replace {
		return Outcome{}, events.Errorf(events.CodeIdentityConflict,
			"package %s was added from %s, this one is in %s: remove it first, or replace it", c.Package.Key, cur.Dir, c.Package.Dir)
	}
	if r := s.active(c.Package.Key); r != nil {
		return Outcome{}, busy(r)
	}
	return happened(events.ScopeProfile, events.TypePackageAdded, events.PackageAdded{Package: c.Package}, answer)
}

func busy(r *run) error {
	return events.Errorf(events.CodeBusy, "the setup of %s runs: %s", r.plan.Key, r.plan.Run).With("run", string(r.plan.Run))
}

// checkPackage refuses what no honest reader of a directory makes.
func checkPackage(p events.Package) error {
	if Normalise(p.Name) == "" || p.Source == "" {
		return &events.Error{Code: events.CodeInvalid, Path: "/package/name", Message: "a package needs a name and a source"}
	}
	if want := KeyOf(p.Name, p.Source); p.Key != want {
		return &events.Error{Code: events.CodeInvalid, Path: "/package/key", Message: "the key of this name and source is " + string(want)}
	}
	if want := ContentRevision(p.Files); p.Revision != want {
		return &events.Error{Code: events.CodeInvalid, Path: "/package/revision", Message: "the revision of these files is " + string(want)}
	}
	if !filepath.IsAbs(p.Dir) || filepath.Clean(p.Dir) != p.Dir {
		return &events.Error{Code: events.CodeInvalid, Path: "/package/dir", Message: "the directory is absolute and clean"}
	}
	if !slices.IsSortedFunc(p.Files, func(a, b events.PackageFile) int { return compare(a.Path, b.Path) }) {
		return &events.Error{Code: events.CodeInvalid, Path: "/package/files", Message: "the files are in order of their paths"}
	}
	if p.Setup != nil && (len(p.Setup.Command) == 0 || p.Setup.Command[0] == "" || p.Setup.TimeoutMS <= 0) {
		return &events.Error{Code: events.CodeInvalid, Path: "/package/setup", Message: "a setup needs a command and a timeout"}
	}
	return nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Enable decides on enabling packages, all of them or none. It never runs a setup.
func (s *State) Enable(c events.EnablePackages) (Outcome, error) {
	all, changed, err := s.toToggle(c.Packages, true)
	if err != nil || len(changed) == 0 {
		return Outcome{Answer: events.PackageRefs{Packages: refs(all)}}, err
	}
	return happened(events.ScopeProfile, events.TypePackageEnabled,
		events.PackageEnabled{Packages: refs(changed)}, events.PackageRefs{Packages: refs(all)})
}

// Disable decides on disabling packages, all of them or none.
func (s *State) Disable(c events.DisablePackages) (Outcome, error) {
	all, changed, err := s.toToggle(c.Packages, false)
	if err != nil || len(changed) == 0 {
		return Outcome{Answer: events.PackageRefs{Packages: refs(all)}}, err
	}
	return happened(events.ScopeProfile, events.TypePackageDisabled,
		events.PackageDisabled{Packages: refs(changed)}, events.PackageRefs{Packages: refs(all)})
}

func (s *State) toToggle(names []string, on bool) (all, changed []*pack, err error) {
	all, err = s.findAll(names)
	for _, p := range all {
		if p.enabled != on {
			changed = append(changed, p)
		}
	}
	return all, changed, err
}

// Remove decides on forgetting packages, all of them or none.
func (s *State) Remove(c events.RemovePackages) (Outcome, error) {
	all, err := s.findAll(c.Packages)
	if err != nil {
		return Outcome{}, err
	}
	for _, p := range all {
		if r := s.active(p.Key); r != nil {
			return Outcome{}, busy(r)
		}
	}
	return happened(events.ScopeProfile, events.TypePackageRemoved,
		events.PackageRemoved{Packages: refs(all)}, events.PackageRefs{Packages: refs(all)})
}
