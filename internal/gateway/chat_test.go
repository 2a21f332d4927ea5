package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/node"
)

func only(lines []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, prefix) })
}

func TestEachReplyIsToldOnceInOrderBeforeItsMessageIsSettled(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), echo)
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
	send(t, c, "one", "fail two", "three")
	settle(t, c)
	want := []string{
		`ended own true completed reply "you said one" rest "you said one" whole false late false error ""`,
		`ended own true failed reply "fail two" rest "fail two" whole false late false error "as asked"`,
		`ended own true completed reply "you said three" rest "you said three" whole false late false error ""`,
	}
	if diff := cmp.Diff(want, only(f.all(), "ended")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := c.Tally(), (gateway.Tally{Sent: 3, Completed: 2, Failed: 1}); got != want {
		t.Errorf("tally %+v, want %+v", got, want)
	}
}

func TestOthersInTheSessionAreHeardAndNotTakenForOnesOwn(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), echo)
	mine, theirs := newFront(), newFront()
	a := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, mine)
	b := chat(t, gateway.Config{Conn: connect(t, n, "web", events.RoleOperator), Key: "k"}, theirs)
	if a.Session() != b.Session() {
		t.Fatalf("one key, two sessions: %s and %s", a.Session(), b.Session())
	}
	send(t, b, "hello")
	settle(t, b)
	mine.line(t, "message web own false: hello")
	mine.line(t, `ended own false completed reply "you said hello" rest "you said hello" whole false late false error ""`)
	theirs.line(t, "message web own true: hello")
	if got := a.Tally(); got != (gateway.Tally{}) {
		t.Errorf("another's message counts as own: %+v", got)
	}
}

func TestTheSameKeyAgainGoesOnWithTheSameSession(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), echo)
	conn := connect(t, n, "cli", events.RoleGateway)
	first := chat(t, gateway.Config{Conn: conn, Key: "k"}, newFront())
	send(t, first, "one")
	settle(t, first)
	f := newFront()
	again := chat(t, gateway.Config{Conn: conn, Key: "k"}, f)
	if first.Session() != again.Session() || !strings.Contains(again.Greeting(), "1 turns so far") {
		t.Errorf("went on with %s: %s", again.Session(), again.Greeting())
	}
	send(t, again, "two")
	settle(t, again)
	if got := only(f.all(), "ended"); len(got) != 1 {
		t.Errorf("the second chat heard of %q", got)
	}
}

// pieces publishes numbered parts of a reply, leaving out one of them.
func pieces(conn *client.Conn, missing int, parts ...string) func(context.Context, *client.Turn) client.Result {
	return func(_ context.Context, turn *client.Turn) client.Result {
		p := conn.Principal()
		for i, part := range parts {
			m := nats.NewMsg(events.PartSubject(p.Profile, p.Name, turn.Session, turn.ID))
			m.Header.Set(events.HeaderPart, strconv.Itoa(i+1))
			m.Data = []byte(part)
			if i+1 == missing {
				continue
			}
			if err := conn.NATS().PublishMsg(m); err != nil {
				return client.Result{Outcome: events.OutcomeFailed, Error: err.Error()}
			}
		}
		return client.Result{Outcome: events.OutcomeCompleted, Reply: strings.Join(parts, "")}
	}
}

func TestPiecesAndTheRestMakeTheWholeReply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		missing int
	}{{"all pieces come", 0}, {"the second is lost", 2}, {"the first is lost", 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := bus(t, node.Config{})
			agent := connect(t, n, "agent", events.RoleHost)
			host(t, agent, pieces(agent, c.missing, "a", "b", "c"))
			f := newFront()
			ch := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
			send(t, ch, "go")
			settle(t, ch)
			if got := joined(t, f.all()); got != "abc" {
				t.Errorf("pieces and rest make %q: %q", got, f.all())
			}
		})
	}
}

// joined is what a person has read: the pieces, and the rest of the reply.
func joined(t *testing.T, lines []string) string {
	t.Helper()
	text := ""
	for _, l := range lines {
		quoted := ""
		if rest, ok := strings.CutPrefix(l, "piece "); ok {
			quoted = rest
		} else if _, rest, ok := strings.Cut(l, " rest "); ok {
			quoted, _, _ = strings.Cut(rest, " whole")
		} else {
			continue
		}
		s, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("unquote %s: %v", quoted, err)
		}
		text += s
	}
	return text
}

func TestAReplyThatDoesNotFitItsPiecesIsGivenWhole(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	agent := connect(t, n, "agent", events.RoleHost)
	speak := pieces(agent, 0, "another text")
	host(t, agent, func(ctx context.Context, turn *client.Turn) client.Result {
		r := speak(ctx, turn)
		r.Reply = "the reply"
		return r
	})
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
	send(t, c, "go")
	settle(t, c)
	ended := only(f.all(), "ended")
	heard := len(only(f.all(), "piece")) > 0 // a piece that comes after the end is dropped
	if want := `rest "the reply" whole ` + strconv.FormatBool(heard); len(ended) != 1 || !strings.Contains(ended[0], want) {
		t.Errorf("got %q, want %s", f.all(), want)
	}
}

func TestStopInterruptsTheRunningTurn(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), untilStopped)
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
	if busy, err := c.Stop(t.Context()); busy || err != nil {
		t.Errorf("stop of an idle session: %v, %v", busy, err)
	}
	send(t, c, "run")
	f.line(t, "started own true")
	if busy, err := c.Stop(t.Context()); !busy || err != nil {
		t.Errorf("stop: %v, %v", busy, err)
	}
	settle(t, c)
	if got := c.Tally(); got.Failed != 1 {
		t.Errorf("tally %+v", got)
	}
}

func TestStopBeforeTheTurnStartsInterruptsItThen(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	agent := connect(t, n, "agent", events.RoleHost) // wanted, but not serving yet
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
	send(t, c, "run")
	if busy, err := c.Stop(t.Context()); !busy || err != nil {
		t.Fatalf("stop: %v, %v", busy, err)
	}
	host(t, agent, untilStopped)
	settle(t, c)
	if got := only(f.all(), "ended"); len(got) != 1 || !strings.Contains(got[0], "aborted") {
		t.Errorf("got %q", got)
	}
}

func TestAResetRaisesTheEpochAndCarriesWhatWaits(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	agent := connect(t, n, "agent", events.RoleHost)
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
	send(t, c, "kept")
	a, err := c.Reset(t.Context())
	if err != nil || a.Epoch != 2 {
		t.Fatalf("reset: %+v, %v", a, err)
	}
	f.line(t, "notice epoch 2 begins: /new")
	host(t, agent, echo)
	settle(t, c)
	if got := c.Tally(); got.Completed != 1 {
		t.Errorf("the carried message ended as %+v: %q", got, f.all())
	}
}

func TestWhatAFinalizeLeavesUndeliveredIsSettledAsFailed(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	connect(t, n, "agent", events.RoleHost)
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
	send(t, c, "lost")
	operator := connect(t, n, "boss", events.RoleOperator)
	if _, err := operator.Finalize(t.Context(), "k", "enough"); err != nil {
		t.Fatalf("finalize: %v", err)
	}
	settle(t, c)
	f.line(t, "notice 1 of your messages not delivered: the session ended: enough")
	if got := c.Tally(); got.Failed != 1 {
		t.Errorf("tally %+v", got)
	}
}

func TestAPersonIsToldOnceThatNoHostComes(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	agent := connect(t, n, "agent", events.RoleHost)
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, f)
	send(t, c, "anybody?")
	f.until(t, "waiting", func(_ []string, s gateway.State) bool { return s.Activity == gateway.Waiting })
	f.line(t, "notice waiting for a host: the session wants agent, and none has attached")
	host(t, agent, echo)
	settle(t, c)
	f.until(t, "idle", func(_ []string, s gateway.State) bool { return s == gateway.State{Activity: gateway.Idle} })
	if got := only(f.all(), "notice waiting"); len(got) != 1 {
		t.Errorf("told %q", got)
	}
}

func TestARefusedMessageIsCountedAndWaitedForNoMore(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, newFront())
	err := c.Send(t.Context(), strings.Repeat("x", events.MaxBody+1))
	var refusal *events.Error
	if !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
	settle(t, c)
	if got := c.Tally(); got != (gateway.Tally{Sent: 1, Failed: 1}) {
		t.Errorf("tally %+v", got)
	}
}

func TestWaitersAreToldWhenTheChatEnds(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	conn := connect(t, n, "cli", events.RoleGateway)
	c, err := gateway.Open(t.Context(), gateway.Config{Conn: conn, Key: "k"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	send(t, c, "never")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx, newFront()); err != nil {
		t.Errorf("run: %v", err)
	}
	if err := c.Settled(t.Context(), 0); err == nil {
		t.Error("settled although nobody looks any more")
	}
}
