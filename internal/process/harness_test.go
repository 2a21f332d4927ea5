package process_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keryx/internal/process"
)

// env is what the tests give their processes.
func env(more ...string) []string {
	return append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, more...)
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

// output collects what a process writes. It wakes waiters at each piece.
type output struct {
	mu     sync.Mutex
	out    [2]bytes.Buffer
	both   bytes.Buffer
	pieces chan struct{}
}

func newOutput() *output { return &output{pieces: make(chan struct{}, 1)} }

func (o *output) sink(s process.Stream, b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out[s].Write(b)
	o.both.Write(b)
	select {
	case o.pieces <- struct{}{}:
	default:
	}
}

func (o *output) stdout() string { o.mu.Lock(); defer o.mu.Unlock(); return o.out[0].String() }
func (o *output) stderr() string { o.mu.Lock(); defer o.mu.Unlock(); return o.out[1].String() }

// waitFor blocks until stdout holds text.
func (o *output) waitFor(t *testing.T, text string) {
	t.Helper()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for !bytes.Contains([]byte(o.stdout()), []byte(text)) {
		select {
		case <-o.pieces:
		case <-late.C:
			t.Fatalf("stdout is %q and never held %q", o.stdout(), text)
		}
	}
}

// start starts a process that must start, and stops it with the test.
func start(t *testing.T, spec process.Spec) (*process.Process, *output) {
	t.Helper()
	o := newOutput()
	spec.Output = o.sink
	if spec.Env == nil {
		spec.Env = env()
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := process.Start(ctx, spec)
	if err != nil {
		cancel()
		t.Fatalf("start %q: %v", spec.Argv, err)
	}
	t.Cleanup(func() {
		cancel()
		p.Wait()
	})
	return p, o
}

// run runs a process to its end, which must come within limit.
func run(t *testing.T, spec process.Spec, limit time.Duration) (process.Exit, *output) {
	t.Helper()
	p, o := start(t, spec)
	return wait(t, p, limit), o
}

func wait(t *testing.T, p *process.Process, limit time.Duration) process.Exit {
	t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-late.C:
		t.Fatalf("process %d did not end within %v", p.PID(), limit)
	}
	return p.Wait()
}

func ptr(d time.Duration) *time.Duration { return &d }

// gone fails unless the process with this pid, as text, does not run.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("%q is not a pid", pid)
	}
	if err := unix.Kill(n, 0); errors.Is(err, unix.ESRCH) {
		return
	}
	// An orphan may wait to be reaped by init: that is not running.
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err == nil && !bytes.Contains(b, []byte(") Z ")) {
		t.Errorf("process %s still runs: %s", pid, b)
	}
}
