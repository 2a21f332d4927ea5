package e2e_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAJobThatOutlivesTheEpochEndsWithTheSession(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	job := func(outlives string) (id string, pid int) {
		id = b.background("--outlives", outlives, "--", "sleep", "300")
		return id, b.pidOf(id)
	}
	gone := func(pid int) func() bool {
		return func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
	}
	_, short := job("epoch")
	id, long := job("session")
	b.run("bus", "session", "reset", "cli:local", "--reason", "start over", "--dir", b.store())
	b.await("the job of the epoch to end", 20*time.Second, gone(short))
	if gone(long)() {
		t.Fatal("the job of the session ended with the epoch")
	}
	if out := b.run("bus", "ps", "cli:local", "--dir", b.store()); !strings.Contains(out, id) {
		t.Errorf("after the reset ps says %q", out)
	}
	b.run("bus", "session", "finalize", "cli:local", "--reason", "done", "--dir", b.store())
	b.await("the job of the session to end", 20*time.Second, gone(long))
	if got := b.exitOf(id, 20*time.Second); got.Signal != "SIGTERM" {
		t.Errorf("the job of the session ended with %+v", got)
	}
}
