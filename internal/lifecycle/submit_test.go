package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/idle"
	"keryx/internal/lifecycle"
)

func TestWhoMaySpeakAsWhat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		by   events.Principal
		kind events.ItemKind
		want events.ItemKind // "" for forbidden
	}{
		{"a gateway speaks for a user by default", gw1, "", events.ItemUser},
		{"an operator may speak for the system", op, events.ItemSystem, events.ItemSystem},
		{"a host is a peer by default", host, "", events.ItemPeer},
		{"a host never speaks for a user", host, events.ItemUser, ""},
		{"an executor reports the exit of a job", exe, "", events.ItemJobExit},
		{"an executor says nothing else", exe, events.ItemPeer, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{Peers: true})
			s := events.Submit{To: string(session), Kind: tt.kind}
			if tt.want == "" {
				l.refused(tt.by, s, events.CodeForbidden)
				return
			}
			do[events.Receipt](l, tt.by, s)
			if it := l.state.Queue.Waiting()[0]; it.Kind != tt.want || it.Sender != tt.by.Name || it.Mode != events.ModeEnqueue {
				t.Errorf("item %+v", it)
			}
		})
	}
}

func TestAnIdempotencyKeyGivesTheFirstReceiptFor24h(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	s := events.Submit{To: "k1", IdempotencyKey: "x", Body: events.Body{Text: "a"}}
	first := do[events.Receipt](l, gw1, s)
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	if again := do[events.Receipt](l, gw1, s); again != first {
		t.Errorf("again %+v", again)
	}
	if r := do[events.Receipt](l, op, s); r.ID == first.ID {
		t.Error("keys are a sender's own")
	}
	changed := s
	changed.Body.Text = "b"
	l.refused(gw1, changed, events.CodeIdempotencyConflict)
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "done"})
	if again := do[events.Receipt](l, gw1, s); again.ID != first.ID || again.State != events.StateInvalidated || l.state.Open() {
		t.Errorf("after the end: %+v, open %v", again, l.state.Open())
	}
	l.after(idle.KeyLife + time.Second)
	if r := do[events.Receipt](l, gw1, changed); r.ID == first.ID {
		t.Error("the key's life is over")
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	l.refused(gw1, events.Submit{To: "k1", Body: events.Body{Text: strings.Repeat("x", events.MaxBody+1)}}, events.CodeTooLarge)
	for range idle.MaxWaiting {
		l.submit("m")
	}
	l.refused(gw1, events.Submit{To: "k1"}, events.CodeQueueFull)
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"}) // what waits fits into a reset
	if got := l.state.Queue.Pending(); got != idle.MaxWaiting {
		t.Errorf("%d carried", got)
	}
	l = newLedger(t)
	l.register(events.Policy{})
	for range idle.MaxWaitingBytes / events.MaxBody {
		l.submit(strings.Repeat("x", events.MaxBody))
	}
	l.refused(gw1, events.Submit{To: "k1", Body: events.Body{Text: "m"}}, events.CodeQueueFull)
}

func TestARepeatedCommandGetsTheFirstAnswerByteForByte(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	c := l.command(gw1, l.id(), events.Submit{To: "k1"})
	first, _, _ := l.run(c)
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	n := len(l.records)
	l.state = l.refold(0)
	again, _, err := l.run(c)
	if err != nil || string(again) != string(first) || len(l.records) != n {
		t.Errorf("again %s, %v; first %s", again, err, first)
	}
}

func TestCommandsOlderThanTheMemoryAreRefused(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	t.Run("older than a day", func(t *testing.T) {
		c := l.command(gw1, l.id(), events.Submit{To: "k1"})
		c.Sent = l.now.Add(-lifecycle.AnswerLife - time.Second)
		if _, _, err := l.run(c); events.CodeOf(err) != events.CodeTooOld {
			t.Errorf("got %v", err)
		}
	})
	first := l.command(gw1, l.id(), events.Submit{To: "k1"})
	if _, _, err := l.run(first); err != nil {
		t.Fatalf("first command: %v", err)
	}
	l.fillAnswers(lifecycle.MaxAnswers - 1)
	if _, ok := l.state.Answer(first.ID); !ok {
		t.Fatal("forgotten too early")
	}
	l.fillAnswers(1)
	t.Run("older than the oldest answer, when answers were dropped", func(t *testing.T) {
		if _, _, err := l.run(first); events.CodeOf(err) != events.CodeTooOld {
			t.Errorf("got %v", err)
		}
	})
	t.Run("also after a reset, in a fold that begins there", func(t *testing.T) {
		do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
		l.state = l.refold(len(l.records) - 1)
		if _, _, err := l.run(first); events.CodeOf(err) != events.CodeTooOld {
			t.Errorf("got %v", err)
		}
	})
}

// fillAnswers makes the session remember n more answers.
func (l *ledger) fillAnswers(n int) {
	for range n {
		l.after(time.Millisecond)
		do[events.Registered](l, gw1, events.Alias{To: "k1", Names: events.Names{Source: fmt.Sprint(l.minted)}})
	}
}
