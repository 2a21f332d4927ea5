package authority_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/setup"
)

// installer is an executor whose setups are played by the test.
type installer struct {
	*client.Conn
	t      *testing.T
	orders chan events.SetupOrder
	stops  chan events.SetupStopOrder
}

const installHome = "/home/installer"

func (b *bus) installer(t *testing.T, name events.PrincipalName) *installer {
	t.Helper()
	return b.installerFor(t, name, time.Minute)
}

// installerFor is silent after it has taken the lease of the target for so long.
func (b *bus) installerFor(t *testing.T, name events.PrincipalName, ttl time.Duration) *installer {
	t.Helper()
	x := &installer{Conn: b.connect(name, events.RoleExecutor), t: t, orders: make(chan events.SetupOrder, 16), stops: make(chan events.SetupStopOrder, 16)}
	sub, err := x.NATS().Subscribe(events.ExecAll(profile, name, x.Instance()), x.take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	x.hold(ttl)
	return x
}

// hold takes the lease of the target.
func (x *installer) hold(ttl time.Duration) {
	x.t.Helper()
	a := do[events.LeaseAnswer](x.t, x.Conn, events.CmdLeaseAcquire, events.AcquireLease{Key: localLease, Instance: x.Instance(), TTLMS: ttl.Milliseconds()})
	do[events.Selection](x.t, x.Conn, events.CmdTargetRegister, events.RegisterTarget{
		Spec: events.TargetSpec{Name: "local", Kind: "terminal", Home: installHome}, Instance: x.Instance(), LeaseFence: a.Fence,
	})
}

func (x *installer) take(m *nats.Msg) {
	var o events.SetupOrder
	var s events.SetupStopOrder
	switch {
	case m.Subject == events.ExecSubject(profile, x.Principal().Name, x.Instance(), events.ExecSetup) && json.Unmarshal(m.Data, &o) == nil:
		x.orders <- o
	case m.Subject == events.ExecSubject(profile, x.Principal().Name, x.Instance(), events.ExecSetupStop) && json.Unmarshal(m.Data, &s) == nil:
		x.stops <- s
	}
}

func (x *installer) progress(run events.RunID, step, percent int) {
	x.t.Helper()
	do[events.Done](x.t, x.Conn, events.CmdSetupReportProgress, events.ReportProgress{
		Instance: x.Instance(), Fact: events.SetupProgressed{Run: run, Progress: events.SetupProgress{Step: step, Total: 10, Percent: percent}},
	})
}

func (x *installer) end(run events.RunID, code events.Code) events.SetupVerdict {
	x.t.Helper()
	r := events.ReportSetupEnded{Run: run, Instance: x.Instance(), Code: code, End: &events.SetupEnd{Cleanup: events.CleanupProved}}
	if code == "" {
		r.Path = installHome + "/packages/" + string(run)
	}
	return do[events.SetupVerdict](x.t, x.Conn, events.CmdSetupReportEnded, r)
}

func helloPackage() events.Package {
	files := []events.PackageFile{{Path: setup.ManifestName, SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", Bytes: 1}}
	return events.Package{
		Key: setup.KeyOf("Hello", "example.org/hello"), Name: "Hello", Version: "1", Source: "example.org/hello", Dir: "/srv/hello",
		Files: files, Revision: setup.ContentRevision(files), Setup: &events.PackageSetup{Command: []string{"bin/setup"}, TimeoutMS: 60_000},
	}
}

// planSetup adds the package and plans its setup, for a session if there is one.
func planSetup(t *testing.T, op *client.Conn, to string) events.SetupAnswer {
	t.Helper()
	do[events.PackageRefs](t, op, events.CmdPackageAdd, events.AddPackage{Package: helloPackage()})
	return do[events.SetupAnswer](t, op, events.CmdSetupPlan, events.PlanSetup{Package: "Hello", Target: "local", To: to})
}

// runSetup also consents and starts, and waits until the executor has the order.
func runSetup(t *testing.T, op *client.Conn, x *installer, to string) events.RunID {
	t.Helper()
	a := planSetup(t, op, to)
	do[events.SetupAnswer](t, op, events.CmdSetupConsent, events.ConsentSetup{Run: a.Run, Revision: a.Revision})
	do[events.SetupAnswer](t, op, events.CmdSetupRun, events.RunSetup{Run: a.Run, Revision: a.Revision})
	if o := wait(t, "the order", x.orders); o.Plan.Run != a.Run || o.Plan.Revision != a.Revision {
		t.Fatalf("order is %+v", o)
	}
	return a.Run
}

func showSetup(t *testing.T, c *client.Conn, run events.RunID) events.SetupView {
	t.Helper()
	return do[events.SetupView](t, c, events.CmdSetupShow, events.ShowSetup{Run: run})
}

func TestASetupIsOnRecordFromItsPlanToItsEnd(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op, x := b.connect("op", events.RoleOperator), b.installer(t, "runner")
	run := runSetup(t, op, x, "")
	x.progress(run, 3, 30)
	x.progress(run, 2, 20) // late: it tells nothing
	if v := showSetup(t, op, run); v.State != events.SetupStateRunning || v.Progress.Step != 3 || len(v.Plan.Files) != 1 || v.Plan.Home != installHome {
		t.Errorf("run is %+v", v)
	}
	if v := x.end(run, ""); !v.Keep {
		t.Error("the result is not kept")
	}
	got := types(record(t, op, run.Scope()))
	want := []string{"setup.planned", "setup.consented", "setup.started", "setup.progressed", "setup.succeeded"}
	if len(got) != len(want) {
		t.Fatalf("record is %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("record is %v", got)
		}
	}
	packages := do[events.Packages](t, op, events.CmdPackageList, events.PackageList{}).Packages
	if len(packages) != 1 || packages[0].Installed == nil || packages[0].Installed.Run != run || packages[0].Enabled {
		t.Errorf("packages are %+v", packages)
	}
}

func TestNobodyButAnOperatorConsentsOrEnables(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op, x := b.connect("op", events.RoleOperator), b.installer(t, "runner")
	gw, host := b.connect("gw", events.RoleGateway), b.connect("host", events.RoleHost)
	a := planSetup(t, op, "")
	for _, c := range []*client.Conn{gw, host, x.Conn} {
		refused(t, c, events.CmdSetupConsent, events.ConsentSetup{Run: a.Run, Revision: a.Revision}, events.CodeForbidden)
		refused(t, c, events.CmdPackageEnable, events.EnablePackages{Packages: []string{"Hello"}}, events.CodeForbidden)
		refused(t, c, events.CmdPackageAdd, events.AddPackage{Package: helloPackage()}, events.CodeForbidden)
	}
	refused(t, op, events.CmdSetupRun, events.RunSetup{Run: a.Run, Revision: a.Revision}, events.CodeNoConsent)
	other := b.connect("other", events.RoleExecutor)
	refused(t, other, events.CmdSetupReportEnded, events.ReportSetupEnded{Run: a.Run, Instance: other.Instance(), Code: events.CodeSetupFailed}, events.CodeForbidden)
}

func TestACancelStopsTheExecutorAndTakesTheResultAway(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op, x := b.connect("op", events.RoleOperator), b.installer(t, "runner")
	run := runSetup(t, op, x, "")
	do[events.SetupAnswer](t, op, events.CmdSetupCancel, events.CancelSetup{Run: run, Reason: "no"})
	if s := wait(t, "the stop", x.stops); s.Run != run {
		t.Fatalf("stop is of %s", s.Run)
	}
	if v := x.end(run, ""); v.Keep {
		t.Error("the result of a cancelled run is kept")
	}
	if v := showSetup(t, op, run); v.State != events.SetupStateCancelled || v.End == nil {
		t.Errorf("run is %+v", v)
	}
}

func TestARunOutlivesTheBusAndEndsWithItsExecutor(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op, x := b.connect("op", events.RoleOperator), b.installerFor(t, "runner", 2*time.Second)
	run := runSetup(t, op, x, "")
	x.progress(run, 5, 50)
	b.stop()
	b.start()
	op = b.connect("op2", events.RoleOperator)
	if v := showSetup(t, op, run); v.State != events.SetupStateRunning || v.Progress.Percent != 50 {
		t.Errorf("after a restart the run is %+v", v)
	}
	b.await("the end of the run", func() bool { return showSetup(t, op, run).State == events.SetupStateFailed })
	if n := count(record(t, op, run.Scope()), events.TypeSetupFailed); n != 1 {
		t.Errorf("%d ends are on record", n)
	}
}

func TestASessionThatWaitsIsToldOnce(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op, gw, x := b.connect("op", events.RoleOperator), b.connect("gw", events.RoleGateway), b.installer(t, "runner")
	id := register(t, gw, "k:1", events.Policy{})
	run := runSetup(t, op, x, "k:1")
	x.end(run, events.CodeSetupFailed)
	if n := count(record(t, op, id.Scope()), events.TypeContinuationQueued); n != 0 {
		t.Errorf("a failure told the session %d times", n)
	}
	run = runSetup(t, op, x, "") // the request is kept for the retry
	x.end(run, "")
	b.await("the word", func() bool { return count(record(t, op, run.Scope()), events.TypeSetupNotified) == 1 })
	b.stop()
	b.start()
	op = b.connect("op2", events.RoleOperator)
	told := 0
	for _, r := range record(t, op, id.Scope()) {
		if d, err := events.DataOf[events.ContinuationQueued](r); r.Type == events.TypeContinuationQueued && err == nil {
			if d.Item.Kind != events.ItemSetupReceipt || len(d.Item.Bind) != 3 {
				t.Errorf("item is %+v", d.Item)
			}
			told++
		}
	}
	if told != 1 {
		t.Errorf("the session was told %d times", told)
	}
}

func TestASessionThatIsNoLongerWhatItWasIsNotTold(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, gw *client.Conn){
		"its surface changed and changed back": func(t *testing.T, gw *client.Conn) {
			t.Helper()
			for _, surface := range []string{"other", "terminal"} {
				do[events.Registered](t, gw, events.CmdSessionAlias, events.Alias{To: "k:1", Names: events.Names{Surface: surface, GatewaySessionKey: events.GatewaySessionKey("k:" + surface)}})
			}
		},
		"it was reset": func(t *testing.T, gw *client.Conn) {
			t.Helper()
			do[events.EpochAnswer](t, gw, events.CmdSessionReset, events.Reset{To: "k:1", Reason: "new"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBus(t)
			op, gw, x := b.connect("op", events.RoleOperator), b.connect("gw", events.RoleGateway), b.installer(t, "runner")
			r, err := gw.Register(t.Context(), events.Names{GatewaySessionKey: "k:1", Surface: "terminal"}, events.Policy{})
			if err != nil {
				t.Fatal(err)
			}
			run := runSetup(t, op, x, "k:1")
			change(t, gw)
			x.end(run, "")
			b.await("the word", func() bool { return count(record(t, op, run.Scope()), events.TypeSetupNotified) == 1 })
			if n := count(record(t, op, r.Session.Scope()), events.TypeContinuationQueued); n != 0 {
				t.Errorf("the session was told %d times", n)
			}
		})
	}
}

func TestAPackagesTargetIsUsableFromTheNextAttachOn(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op, gw, x := b.connect("op", events.RoleOperator), b.connect("gw", events.RoleGateway), b.installer(t, "runner")
	p := helloPackage()
	do[events.PackageRefs](t, op, events.CmdPackageAdd, events.AddPackage{Package: p})
	a := do[events.LeaseAnswer](t, x.Conn, events.CmdLeaseAcquire, events.AcquireLease{
		Key: events.LeaseKey{Profile: profile, Kind: events.LeaseTarget, Name: "hello"}, Instance: x.Instance(), TTLMS: 60_000,
	})
	sel := do[events.Selection](t, x.Conn, events.CmdTargetRegister, events.RegisterTarget{
		Spec: events.TargetSpec{Name: "hello", Kind: "terminal", Package: &events.PackageRef{Key: p.Key, Revision: p.Revision}}, Instance: x.Instance(), LeaseFence: a.Fence,
	})
	id := register(t, gw, "k:1", events.Policy{})
	start := events.StartExec{Session: id, Selection: sel, Spec: events.ExecSpec{Argv: []string{"true"}}}
	do[events.PackageRefs](t, op, events.CmdPackageEnable, events.EnablePackages{Packages: []string{"Hello"}})
	refused(t, op, events.CmdExecStart, start, events.CodeNotInEffect)
	inEffect := func() bool {
		v := do[events.Packages](t, op, events.CmdPackageList, events.PackageList{To: "k:1"}).Packages
		return len(v) == 1 && v[0].Enabled && v[0].InEffect != nil && *v[0].InEffect
	}
	if inEffect() {
		t.Error("the package is in effect at once")
	}
	attachFor(t, b, b.connect("host", events.RoleHost), id, time.Minute)
	if !inEffect() {
		t.Error("the package is not in effect after the attach")
	}
	do[events.ExecAnswer](t, op, events.CmdExecStart, start)
}
