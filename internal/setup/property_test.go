package setup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/setup"
)

// TestAnySequenceOfCommandsKeepsThePromises draws commands of operators and words of
// executors in any order, and looks after each.
func TestAnySequenceOfCommandsKeepsThePromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		packs := []events.Package{hello, packageOf("Tool", "example.org/a", "a1"), packageOf("Tool", "example.org/a", "a2")}
		var runs []events.SetupAnswer
		for range rapid.IntRange(1, 60).Draw(rt, "commands") {
			before := snapshot(&w.state)
			length := len(w.log)
			p := rapid.SampledFrom(packs).Draw(rt, "package")
			var r events.SetupAnswer
			if len(runs) > 0 {
				r = rapid.SampledFrom(runs).Draw(rt, "run")
			}
			i := rapid.SampledFrom([]events.Instance{inst, inst, other}).Draw(rt, "instance")
			report := succeeded(r.Run)
			report.Instance = i
			bad := failed(r.Run)
			bad.Instance = i
			switch verb := rapid.SampledFrom([]string{"add", "enable", "disable", "remove", "plan", "plan", "consent", "consent", "run", "run", "cancel", "progress", "progress", "good", "bad", "lost"}).Draw(rt, "verb"); verb {
			case "add":
				w.try(w.state.Add(events.AddPackage{Package: p}))
			case "enable":
				w.try(w.state.Enable(events.EnablePackages{Packages: []string{string(p.Key)}}))
			case "disable":
				w.try(w.state.Disable(events.DisablePackages{Packages: []string{string(p.Key)}}))
			case "remove":
				w.try(w.state.Remove(events.RemovePackages{Packages: []string{string(p.Key)}}))
			case "plan":
				if a, ok := w.try(w.state.Plan(events.PlanSetup{Package: string(p.Key), Target: "local"}, events.RunID(events.NewID()), "default", place, nil)).(events.SetupAnswer); ok {
					runs = append(runs, a)
				}
			case "consent":
				w.try(w.state.Consent(events.ConsentSetup{Run: r.Run, Revision: r.Revision}))
			case "run":
				w.try(w.state.Start(events.RunSetup{Run: r.Run, Revision: r.Revision}, place))
			case "cancel":
				w.try(w.state.Cancel(events.CancelSetup{Run: r.Run}))
			case "progress":
				told := events.SetupProgress{Step: rapid.IntRange(0, 5).Draw(rt, "step"), Percent: rapid.IntRange(0, 100).Draw(rt, "percent")}
				w.try(w.state.Progress("runner", events.ReportProgress{Instance: i, Fact: events.SetupProgressed{Run: r.Run, Progress: told}}))
			case "good":
				w.try(w.state.End("runner", report))
			case "bad":
				w.try(w.state.End("runner", bad))
			case "lost":
				for _, o := range w.state.Lost("runner", i, "local") {
					w.try(o, nil)
				}
			}
			w.promises(rt, before, w.log[length:])
		}
		w.foldsAgain(rt)
	})
}

// try folds what was decided; a refusal changes nothing.
func (w *world) try(o setup.Outcome, err error) any {
	w.t.Helper()
	a, err := w.do(o, err)
	if err != nil {
		return nil
	}
	return a
}

type picture struct {
	packages map[events.PackageKey]events.PackageView
	runs     map[events.RunID]events.SetupSummary
}

func snapshot(s *setup.State) picture {
	p := picture{make(map[events.PackageKey]events.PackageView), make(map[events.RunID]events.SetupSummary)}
	for _, v := range s.List(0) {
		p.packages[v.Package.Key] = v
	}
	runs, _ := s.Runs(events.SetupList{Limit: 1000})
	for _, r := range runs {
		p.runs[r.Run] = r
	}
	return p
}

func (w *world) promises(rt *rapid.T, before picture, added []events.Record) {
	after := snapshot(&w.state)
	types := map[events.Type]bool{}
	for _, r := range added {
		types[r.Type] = true
	}
	active := map[events.PackageKey]int{}
	for id, now := range after.runs {
		was, known := before.runs[id]
		if now.State.Active() {
			active[now.Key]++
		}
		if !known {
			continue
		}
		switch {
		case now.Progress.Percent < was.Progress.Percent, now.Progress.Step < was.Progress.Step:
			rt.Fatalf("progress went from %+v to %+v", was.Progress, now.Progress)
		case was.State.Over() && now.State != was.State:
			rt.Fatalf("run %s was %s and is %s", id, was.State, now.State)
		case was.State == events.SetupStateCancelling && now.State == events.SetupStateSucceeded:
			rt.Fatalf("run %s succeeded after it was cancelled", id)
		case was.State == events.SetupStatePlanned && now.State.Active():
			rt.Fatalf("run %s started without consent", id)
		}
	}
	for key, n := range active {
		if n > 1 {
			rt.Fatalf("%d runs of %s are active", n, key)
		}
	}
	for key, was := range before.packages {
		now, still := after.packages[key]
		if !still {
			continue
		}
		if was.Enabled != now.Enabled && !types[events.TypePackageEnabled] && !types[events.TypePackageDisabled] {
			rt.Fatalf("%s became enabled=%t by %v", key, now.Enabled, types)
		}
		if !cmp.Equal(was.Installed, now.Installed) && !types[events.TypeSetupSucceeded] {
			rt.Fatalf("what %s has installed changed by %v", key, types)
		}
	}
}

// foldsAgain folds the log from the beginning and compares all that can be seen.
func (w *world) foldsAgain(rt *rapid.T) {
	var again setup.State
	for _, r := range w.log {
		if err := again.Fold(r); err != nil {
			rt.Fatal(err)
		}
	}
	want, got := snapshot(&w.state), snapshot(&again)
	if d := cmp.Diff(want, got, cmp.AllowUnexported(picture{})); d != "" {
		rt.Fatalf("folding again (-first +again):\n%s", d)
	}
}
