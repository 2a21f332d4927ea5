package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// The ledger itself fails on an event of more than events.MaxData.
func TestTheCarryFitsIntoOneEventHoweverMuchThereIs(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	long := strings.Repeat("n", lifecycle.MaxNameBytes-10)
	for i := range lifecycle.MaxNames - 1 {
		do[events.Registered](l, gw1, events.Alias{To: "k1", Names: events.Names{
			GatewaySessionKey: events.GatewaySessionKey(fmt.Sprint(long, i)),
		}})
	}
	l.refused(gw1, events.Alias{To: "k1", Names: events.Names{GatewaySessionKey: "one more"}}, events.CodeTooLarge)
	l.refused(gw1, events.Alias{To: "k1", Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(long + long)}}, events.CodeTooLarge)
	for i := range 900 {
		do[events.Receipt](l, gw1, events.Submit{
			To: "k1", IdempotencyKey: fmt.Sprint("key", i), Body: events.Body{Text: strings.Repeat("x", 1000)},
		})
	}
	l.fillAnswers(3000)
	before := l.refold(0)
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	checkBounds(t, l, &before)
}

// checkBounds looks at a fold that begins at the reset: what was too much is refused,
// what fit is known.
func checkBounds(t *testing.T, l *ledger, before *lifecycle.State) {
	t.Helper()
	first := l.records[0].Causation
	begin := 0
	for i, r := range l.records {
		if r.Type == events.TypeSessionReset {
			begin = i
		}
	}
	s := l.refold(begin)
	newest := l.records[begin-2].Causation
	want, _ := before.Answer(newest)
	if got, _ := s.Answer(newest); len(want) == 0 || string(got) != string(want) {
		t.Errorf("newest answer %s, want %s", got, want)
	}
	if _, ok := s.Answer(first); ok {
		t.Error("all answers fit; the test is too small")
	}
	if got := s.Queue.Pending(); got != 900 {
		t.Errorf("%d of 900 items came along", got)
	}
	c := l.command(gw1, first, events.Submit{To: "k1"})
	c.Sent = l.records[0].Time
	if _, err := lifecycle.Decide(&s, c); events.CodeOf(err) != events.CodeTooOld {
		t.Errorf("a forgotten command: %v", err)
	}
}

func TestExecsAreCarriedWithoutWhatTheyWereFed(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	do[events.ExecAnswer](l, host, events.StartExec{
		Session: session, Fence: f, Selection: events.Selection{Executor: exe.Name, Instance: "e1"},
		Spec: events.ExecSpec{
			Argv: []string{"sh", "-c", strings.Repeat("x", 5000)}, Stdin: make([]byte, 1<<19),
			EnvSet: map[string]string{"SECRET": "x"}, Outlives: events.OutlivesSession,
		},
	})
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	spec := l.state.Execs()[0].Request.Spec
	if got := strings.Join(spec.Argv, " "); got != "sh -c ..." || spec.Stdin != nil || spec.EnvSet != nil {
		t.Errorf("carried %+v", spec)
	}
}
