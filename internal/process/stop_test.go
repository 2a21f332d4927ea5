package process_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
	"keryx/internal/process"
)

// leakDescriptor makes a descriptor that a child would inherit.
func leakDescriptor(t *testing.T, f *os.File) int {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fd := -1
	_ = conn.Control(func(own uintptr) { fd, err = unix.Dup(int(own)) }) // dup clears close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func TestCase_D2_ABackgroundChildDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	began := time.Now()
	got, o := run(t, process.Spec{Argv: sh("sleep 30 & echo $!; echo started"), Timeout: 5 * time.Second}, 10*time.Second)
	if took := time.Since(began); took >= time.Second {
		t.Errorf("took %v", took)
	}
	pid, rest, _ := strings.Cut(o.stdout(), "\n")
	if rest != "started\n" || got.Code != 0 || got.TimedOut || got.Cleanup != events.CleanupSwept {
		t.Errorf("stdout %q, exit %+v", rest, got)
	}
	gone(t, pid)
}

func TestCase_D2_ATimeoutEndsTheTree(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"/bin/dash", "/bin/bash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got, o := run(t, process.Spec{
				Argv: []string{shell, "-c", "sleep 20 & echo $!; wait; true"}, Timeout: time.Second,
			}, 10*time.Second)
			if took := time.Since(began); took < time.Second || took >= 2*time.Second {
				t.Errorf("took %v", took)
			}
			if !got.TimedOut || got.Signal != "SIGTERM" || got.Stopped || got.Cleanup != events.CleanupSwept {
				t.Errorf("exit is %+v", got)
			}
			gone(t, strings.TrimSpace(o.stdout()))
		})
	}
}

func TestCase_D6_TheStopLadder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace    *time.Duration
		from, to time.Duration
	}{
		"a second of grace":     {ptr(time.Second), 700 * time.Millisecond, 1300 * time.Millisecond},
		"no grace at all":       {ptr(0), 0, 300 * time.Millisecond},
		"an omitted grace is 5": {nil, 4700 * time.Millisecond, 5300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := start(t, process.Spec{Argv: sh(`trap "" TERM; echo ready; sleep 300`)})
			o.waitFor(t, "ready")
			began := time.Now()
			if err := p.Stop(c.grace); err != nil {
				t.Fatal(err)
			}
			got := wait(t, p, 10*time.Second)
			if took := time.Since(began); took < c.from || took > c.to {
				t.Errorf("took %v, want %v to %v", took, c.from, c.to)
			}
			if got.Signal != "SIGKILL" || got.Code != -1 || !got.Stopped || got.Cleanup != events.CleanupSwept {
				t.Errorf("exit is %+v", got)
			}
		})
	}
}

func TestCase_D6_ANegativeGraceIsRefused(t *testing.T) {
	t.Parallel()
	p, o := start(t, process.Spec{Argv: sh("trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done")})
	o.waitFor(t, "ready")
	if err := p.Stop(ptr(-5)); !errors.Is(err, process.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	select {
	case <-p.Done():
		t.Error("it was stopped")
	default:
	}
	if err := p.Stop(nil); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, p, 10*time.Second); got.Code != 9 {
		t.Errorf("TERM was not the first signal: %+v", got)
	}
	if err := p.Stop(nil); err != nil {
		t.Errorf("stop after the end: %v", err)
	}
}

func TestASecondStopShortensTheFirst(t *testing.T) {
	t.Parallel()
	p, o := start(t, process.Spec{Argv: sh(`trap "" TERM; echo ready; sleep 300`)})
	o.waitFor(t, "ready")
	began := time.Now()
	for _, g := range []time.Duration{time.Minute, 200 * time.Millisecond, time.Hour} {
		if err := p.Stop(ptr(g)); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, p, 10*time.Second)
	if took := time.Since(began); took < 150*time.Millisecond || took > time.Second {
		t.Errorf("took %v", took)
	}
}

func TestTheContextStopsTheTree(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := newOutput()
	p, err := process.Start(ctx, process.Spec{Argv: sh("echo ready; sleep 300"), Env: env(), Output: o.sink})
	if err != nil {
		t.Fatal(err)
	}
	o.waitFor(t, "ready")
	cancel()
	if got := wait(t, p, 5*time.Second); got.Signal != "SIGTERM" || !got.Stopped {
		t.Errorf("exit is %+v", got)
	}
}

func TestAStopReachesTheWholeTree(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"children of the group":             `sleep 301 & echo $!; sleep 302 & echo $!; echo ready; wait`,
		"a child in a session of its own":   `setsid sh -c 'echo $$; echo ready; exec sleep 301' & wait`,
		"an orphan in a session of its own": `(setsid sh -c 'echo $$; echo ready; exec sleep 301' &) ; wait; sleep 302`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := "KERYX_TEST_MARK=" + t.Name()
			p, o := start(t, process.Spec{Argv: sh(script), Env: env(mark), Mark: mark})
			o.waitFor(t, "ready")
			if err := p.Stop(ptr(time.Second)); err != nil {
				t.Fatal(err)
			}
			if got := wait(t, p, 5*time.Second); got.Cleanup != events.CleanupSwept {
				t.Errorf("exit is %+v", got)
			}
			for _, pid := range strings.Fields(strings.TrimSuffix(o.stdout(), "ready\n")) {
				gone(t, pid)
			}
		})
	}
}

func TestCase_D1_NothingSurvivesTheLeader(t *testing.T) {
	t.Parallel()
	mark := "KERYX_TEST_MARK=d1"
	script := `sleep 301 & echo $!; (setsid sh -c 'echo $$; exec sleep 302' &)
(setsid sh -c "sh -c 'echo \$\$; exec sleep 303' &" &) ; sleep 0.3; exit 0`
	got, o := run(t, process.Spec{Argv: sh(script), Env: env(mark), Mark: mark}, 5*time.Second)
	if got.Cleanup != events.CleanupSwept || got.Code != 0 {
		t.Errorf("exit is %+v", got)
	}
	pids := strings.Fields(o.stdout())
	if len(pids) != 3 {
		t.Fatalf("stdout is %q", o.stdout())
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}

func TestLeaveKeepsWhatRunsOn(t *testing.T) {
	t.Parallel()
	got, o := run(t, process.Spec{Argv: sh("sleep 30 >/dev/null 2>&1 & echo $!"), Leave: true}, 5*time.Second)
	if got.Cleanup != events.CleanupLeft || len(got.LeftPIDs) != 1 {
		t.Fatalf("exit is %+v, stdout %q", got, o.stdout())
	}
	if err := unix.Kill(got.LeftPIDs[0], unix.SIGKILL); err != nil {
		t.Errorf("what was left does not run: %v", err)
	}
}

func TestKillWhileForking(t *testing.T) {
	t.Parallel()
	mark := "KERYX_TEST_MARK=forking"
	script := `echo ready; trap "" TERM; while :; do (sleep 100 & sleep 100 & setsid sleep 100 &); done`
	p, o := start(t, process.Spec{Argv: sh(script), Env: env(mark), Mark: mark})
	o.waitFor(t, "ready")
	if err := p.Stop(ptr(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, p, 10*time.Second); got.Cleanup != events.CleanupSwept {
		t.Errorf("exit is %+v", got)
	}
	if n := carriers(t, mark); n != 0 {
		t.Errorf("%d processes of the tree still run", n)
	}
}

// carriers counts running processes that have an entry in their environment.
func carriers(t *testing.T, entry string) (n int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if b, err := os.ReadFile("/proc/" + d.Name() + "/environ"); err == nil && strings.Contains(string(b), entry) {
			n++
		}
	}
	return n
}

// Not parallel: it counts what the whole test binary has open.
func TestNothingIsLeaked(t *testing.T) {
	warm := func(n int) {
		for range n {
			run(t, process.Spec{Argv: sh("exit 3"), Stdin: []byte("x")}, 10*time.Second)
		}
	}
	warm(5)
	fds, routines := descriptors(t), runtime.NumGoroutine()
	warm(50)
	for range 3 {
		got, _ := run(t, process.Spec{Argv: sh("sleep 60 & exit 3")}, time.Second*2)
		if got.Code != 3 {
			t.Errorf("exit is %+v", got)
		}
	}
	// The tests' own context watchers end asynchronously; a leak of one each would show.
	if n := descriptors(t); n > fds+5 {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if n := runtime.NumGoroutine(); n > routines+5 {
		t.Errorf("%d goroutines, %d before", n, routines)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}
