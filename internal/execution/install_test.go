package execution_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"keryx/events"
	"keryx/internal/execution"
	"keryx/internal/setup"
	"keryx/internal/setup/bundle"
)

// installBus answers what an installer asks. ended is the answer to the end of a run.
type installBus struct {
	*memoryBus
	ended   func(answer any) error
	reports chan events.ReportSetupEnded
}

func (b *installBus) Do(ctx context.Context, t events.Type, data, answer any) error {
	switch d := data.(type) {
	case events.SetupList, events.PackageList, events.ReportProgress:
		return nil // the zero answer: there are none
	case events.ReportSetupEnded:
		b.reports <- d
		return b.ended(answer)
	}
	return b.memoryBus.Do(ctx, t, data, answer)
}

func TestWhatARunHasMadeStaysWhereItMayBeOnRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		ended        func(answer any) error
		stays, links bool
	}{
		{"the bus counts it", func(a any) error { return json.Unmarshal([]byte(`{"keep":true}`), a) }, true, true},
		{"the bus does not count it", func(a any) error { return json.Unmarshal([]byte(`{"keep":false}`), a) }, false, false},
		{"the bus refuses it", func(any) error { return events.Errorf(events.CodeUnknownRun, "none") }, false, false},
		{"the answer is lost", func(any) error { return nats.ErrConnectionClosed }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &installBus{memoryBus: newBus(t), ended: c.ended, reports: make(chan events.ReportSetupEnded, 1)}
			home := t.TempDir()
			serve(t, b, execution.Config{Home: home})
			b.until("a registration", func() bool { return b.target != nil })
			plan := planOf(t, home)
			b.order(plan)
			path := (<-b.reports).Path
			if path == "" {
				t.Fatal("the run failed")
			}
			awaitLock(t, filepath.Join(filepath.Dir(path), ".lock"))
			_, err := os.Stat(path)
			_, linked := os.Stat(filepath.Join(filepath.Dir(path), "current"))
			if (err == nil) != c.stays || (linked == nil) != c.links {
				t.Errorf("the result: %v, the link: %v", err, linked)
			}
		})
	}
}

// awaitLock returns once nobody holds the lock of a package: all that follows an end is done.
func awaitLock(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only its lock was wanted
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// planOf is of a package that writes one file.
func planOf(t *testing.T, home string) events.SetupPlan {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		setup.ManifestName: "name: T\nversion: '1'\nsource: s\nsetup: {command: [./run]}\n",
		"run":              "#!/bin/sh\necho x > \"$KERYX_SETUP_OUT/x\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	plan := events.SetupPlan{
		Run: events.RunID(events.NewID()), Key: p.Key, Name: p.Name, Version: p.Version, Source: p.Source, Dir: dir, Profile: profile,
		Target: "local", Executor: executor, Home: home, Setup: *p.Setup, Package: p.Revision, Files: p.Files,
	}
	plan.Revision = setup.PlanRevision(plan)
	return plan
}

func (b *installBus) order(plan events.SetupPlan) {
	b.t.Helper()
	body, err := json.Marshal(events.SetupOrder{Plan: plan})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.nc.Publish(events.ExecSubject(profile, executor, b.instance, events.ExecSetup), body); err != nil {
		b.t.Fatal(err)
	}
}

func TestAPlanOfAnotherPlaceIsNotRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*events.SetupPlan){
		"profile":  func(p *events.SetupPlan) { p.Profile = "other" },
		"home":     func(p *events.SetupPlan) { p.Home = "/elsewhere" },
		"executor": func(p *events.SetupPlan) { p.Executor = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &installBus{memoryBus: newBus(t), ended: func(any) error { return nil }, reports: make(chan events.ReportSetupEnded, 1)}
			home := t.TempDir()
			serve(t, b, execution.Config{Home: home})
			b.until("a registration", func() bool { return b.target != nil })
			plan := planOf(t, home)
			change(&plan)
			plan.Revision = setup.PlanRevision(plan)
			b.order(plan)
			if r := <-b.reports; r.Code != events.CodeRevisionChanged || r.End != nil {
				t.Errorf("the report is %+v", r)
			}
		})
	}
}
