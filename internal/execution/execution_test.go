package execution_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/execution"
	"keryx/internal/process"
)

// serve runs an executor until the test ends or stop is called, which returns what Run
// returned.
func serve(t *testing.T, b execution.Bus, cfg execution.Config) (stop func() error) {
	t.Helper()
	if cfg.Target.Name == "" {
		cfg.Target.Name = "local"
	}
	if cfg.SpoolDir == "" {
		cfg.SpoolDir = t.TempDir()
	}
	if cfg.Environ == nil {
		cfg.Environ = []string{"PATH=/usr/bin:/bin", "HOME=/tmp", "BUS_TOKEN=tok-abc123"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- execution.Run(ctx, b, cfg) }()
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("executor did not stop")
			return nil
		}
	}
	t.Cleanup(func() {
		if !stopped {
			if err := stop(); err != nil {
				t.Errorf("run: %v", err)
			}
		}
		cancel()
	})
	return stop
}

func sh(script string) events.ExecSpec {
	return events.ExecSpec{Argv: []string{"/bin/sh", "-c", script}}
}

// cleanup is what the end of a command says on this system.
func cleanup(t *testing.T) events.Cleanup {
	t.Helper()
	g, err := process.OpenGroups("test-"+events.NewID(), "one")
	if errors.Is(err, process.ErrNoGroups) {
		return events.CleanupSwept
	}
	if err := errors.Join(err, g.Close()); err != nil {
		t.Fatal(err)
	}
	return events.CleanupProved
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func TestACommandRunsAndIsReported(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	o := b.start(sh("echo out; echo err >&2; exit 7"))
	got := b.exited(o)
	if got.DurationMS < 0 {
		t.Errorf("duration is %d", got.DurationMS)
	}
	got.DurationMS = 0
	want := events.ExecExited{
		Exec: o.Request.Exec, ExitCode: 7, Cleanup: cleanup(t),
		Streams: []events.StreamSummary{
			{Name: "stdout", Bytes: 4, SHA256: sum("out\n")}, {Name: "stderr", Bytes: 4, SHA256: sum("err\n")},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("exit (-want +got):\n%s", d)
	}
	if string(b.kept("stdout")) != "out\n" || string(b.kept("stderr")) != "err\n" {
		t.Errorf("kept %q and %q", b.kept("stdout"), b.kept("stderr"))
	}
	if b.started(o).PID <= 1 {
		t.Error("no pid was reported")
	}
	if n := b.count(o.Request.Exec); n != 2 {
		t.Errorf("%d reports", n)
	}
}

func TestTheStartIsReportedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	for range 20 {
		o := b.start(sh("true"))
		b.exited(o)
		b.mu.Lock()
		last, first := b.facts[len(b.facts)-1], b.facts[len(b.facts)-2]
		b.mu.Unlock()
		if _, ok := last.(events.ReportExited); !ok {
			t.Errorf("last report is %T", last)
		}
		if _, ok := first.(events.ReportStarted); !ok {
			t.Errorf("first report is %T", first)
		}
	}
}

func TestAnOrderToldAgainRunsOnce(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	file := filepath.Join(t.TempDir(), "runs")
	o := b.order(sh("echo run >> " + file + "; sleep 0.1"))
	for range 3 {
		b.tell(events.ExecStart, o)
	}
	b.exited(o)
	b.tell(events.ExecStart, o) // after its end
	other := b.start(sh("true"))
	b.exited(other)
	runs, err := os.ReadFile(file)
	if err != nil || string(runs) != "run\n" {
		t.Errorf("runs are %q, %v", runs, err)
	}
	if n := b.count(o.Request.Exec); n != 2 {
		t.Errorf("%d reports", n)
	}
}

func TestTheEnvironmentIsComposed(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{
		Target: events.TargetSpec{Name: "local", EnvSet: map[string]string{"A": "target", "B": "target", "C": "target"}, EnvUnset: []string{"HOME"}},
		Environ: []string{
			"PATH=/usr/bin:/bin", "HOME=/root", "LC_ALL=C", "TZ=UTC", "BUS_TOKEN=tok-abc123", "NATS_CREDS=/x",
			"KERYX_SESSION=stale", "KERYX_TASK_ID=stale", "THREAD_ID=42",
		},
	})
	spec := events.ExecSpec{Argv: []string{"cat", "/proc/self/environ"}, EnvSet: map[string]string{"B": "call", "KERYX_TURN": "forged"}, EnvUnset: []string{"C"}}
	o := b.order(spec)
	o.Names = events.Names{GatewaySessionKey: "cli:local", StoredSessionID: "st-1", Source: "a\nb"}
	b.tell(events.ExecStart, o)
	b.exited(o)
	got := strings.Split(strings.TrimSuffix(string(b.kept("stdout")), "\x00"), "\x00")
	want := []string{
		"A=target", "B=call", "LC_ALL=C", "PATH=/usr/bin:/bin", "TZ=UTC",
		"KERYX_EPOCH=1", "KERYX_EXEC=" + string(o.Request.Exec), "KERYX_GATEWAY_SESSION_KEY=cli:local", "KERYX_PROFILE=p1",
		"KERYX_SESSION=" + string(o.Session), "KERYX_SOURCE=a\nb", "KERYX_STORED_SESSION_ID=st-1", "KERYX_TURN=" + string(o.Request.Turn),
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
}

func TestCase_A5_NoCommandSeesAnotherSessionsIdentity(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{Environ: []string{"PATH=/usr/bin:/bin", "THREAD_ID=42", "KERYX_TASK_ID=42"}})
	var orders []events.StartOrder
	for i := range 40 {
		o := b.order(sh(`echo "[$KERYX_SESSION $THREAD_ID $KERYX_TASK_ID]"`))
		if i%2 == 0 {
			o.Names.TaskID = "t-even"
		}
		orders = append(orders, o)
		b.tell(events.ExecStart, o)
	}
	for i, o := range orders {
		want := "[" + string(o.Session) + "  ]\n"
		if i%2 == 0 {
			want = "[" + string(o.Session) + "  t-even]\n"
		}
		if got := b.exited(o).Streams[0].SHA256; got != sum(want) {
			t.Errorf("command %d did not print %q", i, want)
		}
	}
}

func TestTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	target, call := t.TempDir(), t.TempDir()
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Cwd: target}})
	for spec, want := range map[*events.ExecSpec]string{
		{Argv: []string{"pwd"}}:            target,
		{Argv: []string{"pwd"}, Cwd: call}: call,
	} {
		if got := b.exited(b.start(*spec)).Streams[0].SHA256; got != sum(want+"\n") {
			t.Errorf("it did not run in %s", want)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	negative := int64(-5)
	for name, c := range map[string]struct {
		spec   events.ExecSpec
		change func(*events.StartOrder)
		code   events.Code
		says   string
	}{
		"a command that does not exist":   {events.ExecSpec{Argv: []string{"keryx-none"}}, nil, events.CodeLaunchFailed, "keryx-none"},
		"a directory that does not exist": {events.ExecSpec{Argv: []string{"true"}, Cwd: "/nowhere"}, nil, events.CodeLaunchFailed, "/nowhere"},
		"a file that may not be executed": {events.ExecSpec{Argv: []string{"/etc/passwd"}}, nil, events.CodeLaunchFailed, "permission"},
		"an empty argument list":          {events.ExecSpec{}, nil, events.CodeInvalid, "argv"},
		"a negative grace":                {events.ExecSpec{Argv: []string{"true"}, GraceMS: &negative}, nil, events.CodeInvalid, "negative"},
		"another generation":              {sh("true"), func(o *events.StartOrder) { o.Request.Selection.Generation++ }, events.CodeStaleSelection, "generation"},
		"another fence":                   {sh("true"), func(o *events.StartOrder) { o.Request.Selection.LeaseFence.Sequence += 7 }, events.CodeStaleSelection, "fence"},
		"another instance":                {sh("true"), func(o *events.StartOrder) { o.Request.Selection.Instance = "other" }, events.CodeStaleSelection, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := b.order(c.spec)
			if c.change != nil {
				c.change(&o)
			}
			b.tell(events.ExecStart, o)
			got := b.refused(o)
			if got.Code != c.code || !strings.Contains(got.Message, c.says) {
				t.Errorf("refused with %+v", got)
			}
			if n := b.count(o.Request.Exec); n != 1 {
				t.Errorf("%d reports", n)
			}
		})
	}
}

func TestAStopEndsTheCommand(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	o := b.start(sh("echo ready; sleep 300"))
	b.until("output", func() bool { return len(b.chunks) > 0 })
	b.tell(events.ExecStop, events.StopOrder{Session: o.Session, Exec: o.Request.Exec})
	if got := b.exited(o); !got.Stopped || got.Signal != "SIGTERM" || got.ExitCode != -1 {
		t.Errorf("exit is %+v", got)
	}
}

func TestATimeoutEndsTheCommand(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	spec := sh("sleep 20; true")
	spec.TimeoutMS = 200
	if got := b.exited(b.start(spec)); !got.TimedOut || got.DurationMS >= 2000 {
		t.Errorf("exit is %+v", got)
	}
}

func TestAStopBeforeTheStartKeepsItFromRunning(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	file := filepath.Join(t.TempDir(), "ran")
	o := b.order(sh("touch " + file))
	b.tell(events.ExecStop, events.StopOrder{Session: o.Session, Exec: o.Request.Exec})
	b.tell(events.ExecStart, o)
	if got := b.refused(o); got.Code != events.CodeLaunchFailed {
		t.Errorf("refused with %+v", got)
	}
	b.exited(b.start(sh("true")))
	if _, err := os.Stat(file); err == nil {
		t.Error("it ran")
	}
}

func TestTheEndOfTheExecutor(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	stop := serve(t, b, execution.Config{})
	long := int64(600_000)
	spec := sh("echo ready; sleep 300")
	spec.GraceMS = &long
	o := b.start(spec)
	b.until("output", func() bool { return len(b.chunks) > 0 })
	began := time.Now()
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("stop took %v", took)
	}
	if got := b.exited(o); !got.Stopped || got.Signal != "SIGTERM" {
		t.Errorf("exit is %+v", got)
	}
	if b.target != nil {
		t.Error("the target is still registered")
	}
	if _, released := b.facts[len(b.facts)-1].(events.ReleaseLease); !released {
		t.Errorf("the last word is %T", b.facts[len(b.facts)-1])
	}
}
