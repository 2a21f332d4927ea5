package execution_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/execution"
)

// patient is a command that notes each line that it reads and each TERM that it gets, and
// ends at the second TERM or when a file is there.
func patient(log, end string) events.ExecSpec {
	spec := sh("trap '' HUP; trap 'echo term >> " + log + "; [ -n \"$t\" ] && exit 3; t=1' TERM; stty -echo; echo ready; " +
		"while [ ! -e " + end + " ]; do read -t 0.05 x && echo \"read $x\" >> " + log + "; done; echo survived")
	spec.Argv[0] = "/bin/bash"
	spec.PTY = &events.PTYSize{Rows: 10, Cols: 40}
	return spec
}

// noted returns what a patient command noted.
func noted(t *testing.T, log string) string {
	t.Helper()
	out, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(out)
}

func (b *memoryBus) ready() {
	b.t.Helper()
	b.until("output", func() bool { return len(b.chunks) > 0 })
}

// lapsed waits, while the bus is away, until the executor refuses to start something.
// The refusal can be reported only later: a command that would run leaves a file.
func (b *memoryBus) lapsed(dir string) {
	b.t.Helper()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		mark := filepath.Join(dir, "mark"+strings.Repeat("x", n))
		b.start(sh("touch " + mark))
		select {
		case <-tick.C:
		case <-late.C:
			b.t.Fatal("commands are started for ever")
		}
		if _, err := os.Stat(mark); err != nil {
			return
		}
	}
}

// TestCase_G2_AHolderWithoutAnswersStopsActingByItself: the variant of the case. Renewals
// go into a black hole; within the ttl of 2 s, by its own clock, the executor starts,
// types and signals nothing more. What it runs goes on, and once the bus is back and the
// lease still free, so does all the rest: the stop that was put off is done then.
func TestCase_G2_AHolderWithoutAnswersStopsActingByItself(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	dir := t.TempDir()
	log, end := filepath.Join(dir, "log"), filepath.Join(dir, "end")
	o := b.start(patient(log, end))
	b.ready()
	b.started(o)
	b.update(func() { b.away = true })
	away := time.Now()
	b.lapsed(dir)
	if took := time.Since(away); took > 2500*time.Millisecond {
		t.Errorf("it acted for %v without an answer", took)
	}
	b.typing(o, events.TTYFrame{Data: []byte("late\r")})
	b.tell(events.ExecStop, events.StopOrder{Session: o.Session, Exec: o.Request.Exec})
	marker := filepath.Join(dir, "marker-file-g2")
	refused := b.start(sh("touch " + marker))
	time.AfterFunc(time.Second, func() { b.update(func() { b.away = false }) })
	if got := b.refused(refused); got.Code != events.CodeLeaseLost {
		t.Errorf("refused with %+v", got)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a process was started")
	}
	awaitFile(t, log) // the stop that was put off
	touch(t, end)
	if got := b.exited(o); !got.Stopped || noted(t, log) != "term\n" {
		t.Errorf("exit is %+v; the command noted %q", got, noted(t, log))
	}
}

func TestWhatRunsIsKeptUntilAnotherHoldsTheTarget(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	dir := t.TempDir()
	log, end := filepath.Join(dir, "log"), filepath.Join(dir, "end")
	o := b.start(patient(log, end))
	b.ready()
	// The lease is lost, and whether another has it is not known yet.
	b.update(func() {
		b.taken = true
		b.refuse[events.CmdLeaseAcquire] = events.Errorf(events.CodeUnavailable, "not now")
	})
	b.until("the loss", func() bool { return b.acquired > 1 })
	if got := noted(t, log); got != "" {
		t.Errorf("before another has the target the command noted %q", got)
	}
	b.update(func() { delete(b.refuse, events.CmdLeaseAcquire) })
	awaitFile(t, log)
	touch(t, end)
	if got := b.exited(o); !got.Stopped {
		t.Errorf("exit is %+v", got)
	}
	b.update(func() { b.taken, b.target = false, nil })
	b.until("a registration anew", func() bool { return b.target != nil && b.target.Generation == 2 })
	if got := b.exited(b.start(sh("true"))); got.ExitCode != 0 {
		t.Errorf("exit is %+v", got)
	}
}

func TestWhatRunsIsTakenUpAgainIfTheLeaseIsStillFree(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	dir := t.TempDir()
	log, end := filepath.Join(dir, "log"), filepath.Join(dir, "end")
	o := b.start(patient(log, end))
	b.ready()
	b.update(func() { b.taken, b.silent = true, true }) // lost, but nobody has it
	b.until("a registration anew", func() bool { return b.target.Generation == 2 })
	b.until("the question whether it runs", func() bool {
		n := 0
		for _, f := range b.facts {
			if r, ok := f.(events.ReportStarted); ok && r.Fact.Exec == o.Request.Exec {
				n++
			}
		}
		return n == 2
	})
	touch(t, end)
	if got := b.exited(o); got.Stopped || got.ExitCode != 0 || noted(t, log) != "" {
		t.Errorf("exit is %+v; the command noted %q", got, noted(t, log))
	}
}

func TestWhatTheBusGaveUpIsStopped(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	dir := t.TempDir()
	log, end := filepath.Join(dir, "log"), filepath.Join(dir, "end")
	o := b.start(patient(log, end))
	b.ready()
	b.started(o)
	b.update(func() {
		b.taken, b.silent = true, true
		b.refuse[events.CmdExecReportStarted] = events.Errorf(events.CodeAlreadyEnded, "lost")
	})
	awaitFile(t, log)
	touch(t, end)
	b.exited(o)
}

// A target that kills has its commands ended at the holder's own deadline, and asks for
// the time that this takes when it takes its lease.
func TestATargetThatKillsEndsWhatRunsAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]events.TargetSpec{
		"by its word":             {Name: "local", OnLeaseLoss: events.OnLeaseLossKill},
		"because it is exclusive": {Name: "local", Exclusive: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t)
			serve(t, b, execution.Config{Target: spec})
			dir := t.TempDir()
			log, end := filepath.Join(dir, "log"), filepath.Join(dir, "end")
			o := b.start(patient(log, end))
			b.ready()
			b.mu.Lock()
			if b.grace != 5000 {
				t.Errorf("asked for a grace of %d ms", b.grace)
			}
			b.mu.Unlock()
			b.update(func() { b.away = true })
			away := time.Now()
			awaitFile(t, log)
			if took := time.Since(away); took > 2200*time.Millisecond {
				t.Errorf("stopped after %v", took)
			}
			touch(t, end)
			b.update(func() { b.away = false })
			if got := b.exited(o); !got.Stopped {
				t.Errorf("exit is %+v", got)
			}
		})
	}
}

// A revoked lease ends what runs, is given back once that has ended, and ends the executor,
// which would not get it again.
func TestARevokedTargetEndsItsExecutor(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	ended := make(chan error, 1)
	go func() {
		ended <- execution.Run(t.Context(), b, execution.Config{Target: events.TargetSpec{Name: "local"}, SpoolDir: t.TempDir()})
	}()
	dir := t.TempDir()
	log, end := filepath.Join(dir, "log"), filepath.Join(dir, "end")
	o := b.start(patient(log, end))
	b.ready()
	b.update(func() {
		b.taken = true
		b.refuse[events.CmdLeaseAcquire] = events.Errorf(events.CodeLeaseRevoked, "moved")
	})
	awaitFile(t, log)
	b.mu.Lock()
	if _, early := factOf(b, func(events.ReleaseLease) bool { return true }); early {
		t.Error("given back while a command runs")
	}
	b.mu.Unlock()
	touch(t, end)
	b.exited(o)
	b.until("the release", func() bool {
		_, ok := factOf(b, func(events.ReleaseLease) bool { return true })
		return ok
	})
	select {
	case err := <-ended:
		if events.CodeOf(err) != events.CodeLeaseRevoked {
			t.Errorf("the executor ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the executor goes on")
	}
}
