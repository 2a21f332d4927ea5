package setup_test

import (
	"strings"
	"testing"

	"keryx/events"
	"keryx/internal/setup"
)

func TestAnExactKeyBeatsANameAndAnAmbiguousNameIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := packageOf("Tool", "example.org/a", "a1"), packageOf("Tool", "example.org/b", "b1")
	c := packageOf(string(a.Key), "example.org/c", "c1") // its name is another's key
	for _, p := range []events.Package{a, b, c} {
		w.must(w.state.Add(events.AddPackage{Package: p}))
	}
	_, err := w.do(w.state.Enable(events.EnablePackages{Packages: []string{"Tool"}}))
	wantCode(t, err, events.CodeAmbiguousName)
	if !strings.Contains(err.Error(), "example.org/a") || !strings.Contains(err.Error(), "example.org/b") {
		t.Errorf("error does not name both sources: %v", err)
	}
	w.must(w.state.Enable(events.EnablePackages{Packages: []string{string(a.Key)}}))
	if !w.view(a).Enabled || w.view(b).Enabled || w.view(c).Enabled {
		t.Errorf("enabled are a %t, b %t, c %t", w.view(a).Enabled, w.view(b).Enabled, w.view(c).Enabled)
	}
}

func TestSeveralAreEnabledTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := packageOf("A", "a", "a1"), packageOf("B", "b", "b1")
	w.must(w.state.Add(events.AddPackage{Package: a}))
	w.must(w.state.Add(events.AddPackage{Package: b}))
	_, err := w.do(w.state.Enable(events.EnablePackages{Packages: []string{"A", "C"}}))
	wantCode(t, err, events.CodeUnknownPackage)
	if w.view(a).Enabled {
		t.Error("A was enabled although C is unknown")
	}
	before := len(w.log)
	w.must(w.state.Enable(events.EnablePackages{Packages: []string{"A", "B", "A"}}))
	w.must(w.state.Enable(events.EnablePackages{Packages: []string{"B"}}))
	if !w.view(a).Enabled || !w.view(b).Enabled || len(w.log) != before+1 {
		t.Errorf("enabled are %t and %t, by %d events", w.view(a).Enabled, w.view(b).Enabled, len(w.log)-before)
	}
}

func TestAKeyThatIsTakenIsRefusedWithBothSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := packageOf("Tool", "example.org/a", "a1")
	w.must(w.state.Add(events.AddPackage{Package: p}))
	moved := p
	moved.Dir = "/srv/elsewhere"
	_, err := w.do(w.state.Add(events.AddPackage{Package: moved}))
	wantCode(t, err, events.CodeIdentityConflict)
	if !strings.Contains(err.Error(), p.Dir) || !strings.Contains(err.Error(), moved.Dir) {
		t.Errorf("error does not name both places: %v", err)
	}
	w.must(w.state.Add(events.AddPackage{Package: moved, Replace: true}))
	if got := w.view(p).Package.Dir; got != moved.Dir {
		t.Errorf("directory is %s", got)
	}
}

func TestAddRefusesWhatNoDirectoryHolds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*events.Package){
		"another key":          func(p *events.Package) { p.Key = "tool-000000000000" },
		"another revision":     func(p *events.Package) { p.Revision = events.Revision(strings.Repeat("0", 64)) },
		"a relative directory": func(p *events.Package) { p.Dir = "srv" },
		"files out of order": func(p *events.Package) {
			p.Files = []events.PackageFile{{Path: "b"}, {Path: "a"}}
			p.Revision = setup.ContentRevision(p.Files)
		},
		"a setup with no command": func(p *events.Package) { p.Setup = &events.PackageSetup{TimeoutMS: 1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := packageOf("Tool", "example.org/a", "a1")
			change(&p)
			_, err := newWorld(t).state.Add(events.AddPackage{Package: p})
			wantCode(t, err, events.CodeInvalid)
		})
	}
}

func TestEnablingTakesEffectAtTheNextEpochOrAttach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := packageOf("Tool", "example.org/a", "a1")
	w.must(w.state.Add(events.AddPackage{Package: p}))
	w.must(w.state.Enable(events.EnablePackages{Packages: []string{"Tool"}}))
	enabled := events.Sequence(len(w.log))
	w.must(w.state.Disable(events.DisablePackages{Packages: []string{"Tool"}}))
	disabled := events.Sequence(len(w.log))
	for _, c := range []struct {
		name  string
		since events.Sequence
		want  bool
	}{
		{"attached before it was enabled", enabled - 1, false},
		{"attached while it was enabled", enabled + 1, true}, // also after it was disabled, until it attaches anew
		{"attached after it was disabled", disabled + 1, false},
	} {
		if got := w.state.InEffect(p.Key, c.since); got != c.want {
			t.Errorf("%s: in effect is %t", c.name, got)
		}
	}
}

func TestARemovedPackageIsGoneWithItsConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.planned(hello, nil)
	w.must(w.state.Consent(events.ConsentSetup{Run: a.Run, Revision: a.Revision}))
	w.must(w.state.Remove(events.RemovePackages{Packages: []string{"Hello"}}))
	_, err := w.do(w.state.Start(events.RunSetup{Run: a.Run, Revision: a.Revision}, place))
	wantCode(t, err, events.CodeUnknownPackage)
	if b := w.planned(hello, nil); b.State != events.SetupStatePlanned {
		t.Errorf("after a removal the next run is %s", b.State)
	}
}

func TestDefaultEnabledEnablesWhatIsAddedAndRunsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := packageOf("Tool", "example.org/a", "a1")
	p.DefaultEnabled = true
	w.must(w.state.Add(events.AddPackage{Package: p}))
	if v := w.view(p); !v.Enabled || v.Run != nil || v.Installed != nil || len(w.log) != 1 {
		t.Errorf("the package is %+v after %d events", v, len(w.log))
	}
}
