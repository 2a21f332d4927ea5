package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// A bus that starts anew on the directory has another address and another key: a command
// that found it by the directory would wait for the old one in vain.
func TestTailSaysThatItsBusHasEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bus := b.serving()
	b.run("bus", "sessions", "--dir", b.store()) // it answers
	tail := b.start("", "bus", "events", "tail", "--dir", b.store(), "--all")
	executor := b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	b.await("tail to tell of the target", 20*time.Second, func() bool {
		return strings.Contains(tail.stdout.String(), "target.registered")
	})
	bus.kill()
	if code := tail.exit(15 * time.Second); code != 1 {
		t.Errorf("tail exited %d, want 1", code)
	}
	if msg := tail.stderr.String(); !strings.Contains(msg, "unavailable") {
		t.Errorf("tail said %q, want the code unavailable", msg)
	}
	executor.kill()
}
