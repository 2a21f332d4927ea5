package e2e_test

import (
	"strings"
	"testing"
	"time"

	"keryx/events"
)

func TestWhoWaitsForAMessageIsToldWhyNothingMoves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	b.gateway().register("k")
	waiting := b.start("", "bus", "submit", "k", "hello", "--wait", "settled", "--dir", b.store())
	b.await("the reason", 20*time.Second, func() bool {
		return strings.Contains(waiting.stderr.String(), "the session waits for a host to attach: it wants sh, and none is connected or willing")
	})
	b.jsHost()
	if code := waiting.exit(30 * time.Second); code != 0 {
		t.Errorf("it exited %d", code)
	}
	if out := waiting.stdout.String(); !strings.Contains(out, "you said hello") {
		t.Errorf("it printed %q", out)
	}
}

func TestWhoWaitsForAMessageWhenTheBusEndsIsToldHowToAskAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bus := b.serving()
	g := b.gateway()
	g.register("k")
	waiting := b.start("", "bus", "submit", "k", "hello", "--wait", "settled", "--dir", b.store())
	b.await("the message", 20*time.Second, func() bool { return strings.Contains(waiting.stderr.String(), " queued") })
	bus.kill()
	if code := waiting.exit(20 * time.Second); code != 1 {
		t.Errorf("it exited %d, want 1", code)
	}
	_, again, found := strings.Cut(strings.TrimSpace(waiting.stderr.String()), "to ask again: bus ")
	if !found {
		t.Fatalf("it said %q", waiting.stderr)
	}
	again, _, _ = strings.Cut(again, "\n")
	b.serving()
	b.jsHost()
	g.reaches(events.ReceiptID(strings.Fields(again)[1]), events.StateSettled)
	if out := b.run("bus", strings.Fields(again)...); !strings.Contains(out, "you said hello") {
		t.Errorf("%q printed %q", again, out)
	}
}
