package setup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
)

var hello = packageOf("Hello", "example.org/hello", "a1")

func TestNothingStartsWithoutConsentToExactlyThis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.planned(hello, nil)
	_, err := w.do(w.state.Start(events.RunSetup{Run: a.Run, Revision: a.Revision}, place))
	wantCode(t, err, events.CodeNoConsent)
	_, err = w.do(w.state.Consent(events.ConsentSetup{Run: a.Run, Revision: hello.Revision}))
	wantCode(t, err, events.CodeRevisionChanged)
	w.must(w.state.Consent(events.ConsentSetup{Run: a.Run, Revision: a.Revision}))
	for name, at := range map[string]func(){
		"another home": func() {
			p := place
			p.Home = "/home/e"
			_, err = w.do(w.state.Start(events.RunSetup{Run: a.Run, Revision: a.Revision}, p))
		},
		"another executor": func() {
			p := place
			p.Executor = "e"
			_, err = w.do(w.state.Start(events.RunSetup{Run: a.Run, Revision: a.Revision}, p))
		},
		"another revision": func() { _, err = w.do(w.state.Start(events.RunSetup{Run: a.Run, Revision: hello.Revision}, place)) },
	} {
		at()
		if err == nil {
			t.Errorf("%s was started", name)
		}
		wantCode(t, err, events.CodeRevisionChanged)
	}
	w.must(w.state.Start(events.RunSetup{Run: a.Run, Revision: a.Revision}, place))
}

func TestAPlanOfWhatThePackageNoLongerIsCannotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.planned(hello, nil)
	w.must(w.state.Consent(events.ConsentSetup{Run: a.Run, Revision: a.Revision}))
	w.must(w.state.Add(events.AddPackage{Package: packageOf("Hello", "example.org/hello", "b2")}))
	_, err := w.do(w.state.Start(events.RunSetup{Run: a.Run, Revision: a.Revision}, place))
	wantCode(t, err, events.CodeRevisionChanged)
}

func TestConsentServesRetriesUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.running(hello, nil)
	w.must(w.state.End("runner", failed(a.Run)))
	b := w.running(hello, nil) // by the same consent
	if b.Revision != a.Revision {
		t.Errorf("revisions are %s and %s", a.Revision, b.Revision)
	}
	w.must(w.state.End("runner", succeeded(b.Run)))
	if c := w.planned(hello, nil); c.State != events.SetupStatePlanned {
		t.Errorf("after a success the next run is %s", c.State)
	}
}

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.running(hello, nil)
	b := w.planned(hello, nil)
	_, err := w.do(w.state.Start(events.RunSetup{Run: b.Run, Revision: b.Revision}, place))
	wantCode(t, err, events.CodeBusy)
	_, err = w.do(w.state.Remove(events.RemovePackages{Packages: []string{"Hello"}}))
	wantCode(t, err, events.CodeBusy)
	w.must(w.state.End("runner", failed(a.Run)))
	w.must(w.state.Start(events.RunSetup{Run: b.Run, Revision: b.Revision}, place))
}

func TestACancelledRunDoesNotSucceedAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.running(hello, nil)
	w.must(w.state.Cancel(events.CancelSetup{Run: a.Run, Reason: "changed my mind"}))
	verdict := w.must(w.state.End("runner", succeeded(a.Run)))
	if verdict != (events.SetupVerdict{}) {
		t.Errorf("verdict is %+v", verdict)
	}
	v := w.view(hello)
	if v.Installed != nil || v.Enabled || v.Run.State != events.SetupStateCancelled {
		t.Errorf("package is %+v, run %+v", v, v.Run)
	}
	if again := w.must(w.state.End("runner", succeeded(a.Run))); again != (events.SetupVerdict{}) {
		t.Errorf("the second verdict is %+v", again)
	}
}

func TestTheSameWordAgainGetsTheSameVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.running(hello, nil)
	for range 2 {
		if v := w.must(w.state.End("runner", succeeded(a.Run))); v != (events.SetupVerdict{Keep: true}) {
			t.Errorf("verdict is %+v", v)
		}
	}
	_, err := w.do(w.state.End("other", succeeded(a.Run)))
	wantCode(t, err, events.CodeForbidden)
}

func TestAFailureLeavesWhatWasInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.running(hello, nil)
	w.must(w.state.End("runner", succeeded(a.Run)))
	w.must(w.state.Enable(events.EnablePackages{Packages: []string{"Hello"}}))
	before := w.view(hello)
	for _, end := range []func(events.RunID){
		func(r events.RunID) { w.must(w.state.End("runner", failed(r))) },
		func(r events.RunID) {
			w.must(w.state.Cancel(events.CancelSetup{Run: r}))
			w.must(w.state.End("runner", failed(r)))
		},
		func(events.RunID) {
			for _, o := range w.state.Lost("runner", inst, "local") {
				w.must(o, nil)
			}
		},
	} {
		end(w.running(hello, nil).Run)
		after := w.view(hello)
		if d := cmp.Diff(before.Installed, after.Installed); d != "" || !after.Enabled || !after.Run.State.Over() {
			t.Errorf("enabled %t, run %s, installed (-before +after):\n%s", after.Enabled, after.Run.State, d)
		}
	}
}

func TestAResultOfAnotherInstanceDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.running(hello, nil)
	r := succeeded(a.Run)
	r.Instance = other
	if v := w.must(w.state.End("runner", r)); v != (events.SetupVerdict{}) {
		t.Errorf("verdict is %+v", v)
	}
	_, err := w.do(w.state.Progress("runner", events.ReportProgress{Instance: inst, Fact: events.SetupProgressed{Run: a.Run}}))
	wantCode(t, err, events.CodeAlreadyEnded)
}

func TestProgressDoesNotGoBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.running(hello, nil)
	for _, c := range []struct{ told, want events.SetupProgress }{
		{events.SetupProgress{Step: 1, Total: 4, Percent: 10, Message: "one"}, events.SetupProgress{Step: 1, Total: 4, Percent: 10, Message: "one"}},
		{events.SetupProgress{Step: 3, Percent: 60}, events.SetupProgress{Step: 3, Total: 4, Percent: 60, Message: "one"}},
		{events.SetupProgress{Step: 2, Percent: 20, Message: "two"}, events.SetupProgress{Step: 3, Total: 4, Percent: 60, Message: "two"}},
		{events.SetupProgress{Step: 9, Percent: 100}, events.SetupProgress{Step: 9, Total: 9, Percent: 99, Message: "two"}},
	} {
		w.must(w.state.Progress("runner", events.ReportProgress{Instance: inst, Fact: events.SetupProgressed{Run: a.Run, Progress: c.told}}))
		if got := w.view(hello).Run.Progress; got != c.want {
			t.Errorf("after %+v it is %+v, want %+v", c.told, got, c.want)
		}
	}
	w.must(w.state.End("runner", succeeded(a.Run)))
	if got := w.view(hello).Run.Progress; got.Percent != 100 || got.Step != got.Total {
		t.Errorf("at the end it is %+v", got)
	}
}

func TestWhoWaitsIsToldOnceByTheRunThatSucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := &events.SetupAsk{Session: "01JSESS10N0000000000000000", Epoch: 1, Sequence: 7}
	a := w.running(hello, ask)
	w.must(w.state.End("runner", failed(a.Run)))
	if owed := w.state.Owed(); len(owed) != 0 {
		t.Errorf("after a failure %+v is owed", owed)
	}
	newer := *ask
	newer.Sequence = 9
	b := w.running(hello, &newer)
	w.must(w.state.End("runner", succeeded(b.Run)))
	owed := w.state.Owed()
	if len(owed) != 1 || owed[0].Run != b.Run || owed[0].Ask != newer {
		t.Fatalf("owed is %+v", owed)
	}
	told := events.SetupNotified{Run: b.Run, Session: ask.Session, Receipt: "01JRECE1PT0000000000000000"}
	w.fact(b.Run.Scope(), events.TypeSetupNotified, told)
	if owed := w.state.Owed(); len(owed) != 0 {
		t.Errorf("after the word %+v is owed", owed)
	}
}

func TestACancelledRequestIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := &events.SetupAsk{Session: "01JSESS10N0000000000000000", Epoch: 1}
	a := w.running(hello, ask)
	w.must(w.state.Cancel(events.CancelSetup{Run: a.Run}))
	w.must(w.state.End("runner", failed(a.Run)))
	b := w.running(hello, nil)
	w.must(w.state.End("runner", succeeded(b.Run)))
	if owed := w.state.Owed(); len(owed) != 0 {
		t.Errorf("owed is %+v", owed)
	}
}
