package setup_test

import (
	"errors"
	"time"

	"keryx/events"
	"keryx/internal/setup"
)

var begin = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// reporter is what tests and property tests have in common.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// world folds what is decided, as the authority does.
type world struct {
	t     reporter
	state setup.State
	log   []events.Record
	tips  map[events.Scope]events.Ordinal
}

func newWorld(t reporter) *world { return &world{t: t, tips: make(map[events.Scope]events.Ordinal)} }

// do folds an outcome and returns its answer.
func (w *world) do(o setup.Outcome, err error) (any, error) {
	w.t.Helper()
	if err != nil || o.Type == "" {
		return o.Answer, err
	}
	body, err := events.MarshalData(o.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	w.tips[o.Scope]++
	seq := len(w.log) + 1
	rec := events.Record{
		Profile: "default", Scope: o.Scope, Type: o.Type, Sequence: events.Sequence(seq), Ordinal: w.tips[o.Scope],
		Time: begin.Add(time.Duration(seq) * time.Second), Data: body,
	}
	w.log = append(w.log, rec)
	if err := w.state.Fold(rec); err != nil {
		w.t.Fatalf("fold %s: %v", rec.Type, err)
	}
	return o.Answer, nil
}

// must is do for what has to succeed.
func (w *world) must(o setup.Outcome, err error) any {
	w.t.Helper()
	a, err := w.do(o, err)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func wantCode(t reporter, err error, code events.Code) {
	t.Helper()
	if !errors.Is(err, events.ErrOf(code)) {
		t.Errorf("error is %v, want %s", err, code)
	}
}

func packageOf(name, source, content string) events.Package {
	files := []events.PackageFile{{Path: setup.ManifestName, SHA256: content, Bytes: 1}}
	return events.Package{
		Key: setup.KeyOf(name, source), Name: name, Version: "1", Source: source, Dir: "/srv/" + setup.Normalise(name), Files: files,
		Revision: setup.ContentRevision(files), Setup: &events.PackageSetup{Command: []string{"bin/setup"}, TimeoutMS: 1000},
	}
}

var (
	inst  = events.Instance("01JNSTANCE0000000000000000")
	other = events.Instance("01JTHERNSTANCE000000000000")
	place = setup.Place{Target: "local", Executor: "runner", Instance: inst, Home: "/home/k"}
)

// planned adds a package and plans its setup.
func (w *world) planned(p events.Package, waits *events.SetupAsk) events.SetupAnswer {
	w.t.Helper()
	w.must(w.state.Add(events.AddPackage{Package: p}))
	return w.must(w.state.Plan(events.PlanSetup{Package: string(p.Key), Target: "local"}, events.RunID(events.NewID()), "default", place, waits)).(events.SetupAnswer)
}

// running also consents and starts.
func (w *world) running(p events.Package, waits *events.SetupAsk) events.SetupAnswer {
	w.t.Helper()
	a := w.planned(p, waits)
	if a.State == events.SetupStatePlanned {
		w.must(w.state.Consent(events.ConsentSetup{Run: a.Run, Revision: a.Revision}))
	}
	return w.must(w.state.Start(events.RunSetup{Run: a.Run, Revision: a.Revision}, place)).(events.SetupAnswer)
}

func (w *world) view(p events.Package) events.PackageView {
	w.t.Helper()
	for _, v := range w.state.List(0) {
		if v.Package.Key == p.Key {
			return v
		}
	}
	w.t.Fatalf("no package %s", p.Key)
	return events.PackageView{}
}

func succeeded(run events.RunID) events.ReportSetupEnded {
	return events.ReportSetupEnded{Run: run, Instance: inst, Path: "/home/k/x", End: &events.SetupEnd{Cleanup: events.CleanupProved}}
}

func failed(run events.RunID) events.ReportSetupEnded {
	return events.ReportSetupEnded{Run: run, Instance: inst, Code: events.CodeSetupFailed, Message: "exit status 1", End: &events.SetupEnd{ExitCode: 1, Cleanup: events.CleanupProved}}
}

// fact folds what the authority appends by itself.
func (w *world) fact(scope events.Scope, t events.Type, data any) {
	w.t.Helper()
	w.must(setup.Outcome{Scope: scope, Type: t, Data: data}, nil)
}
