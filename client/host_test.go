package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

func echo(_ context.Context, t *client.Turn) client.Result {
	return client.Result{Reply: t.Items[0].Body.Text}
}

func TestAHostFindsSessionsThatWaitedBeforeItAndThoseThatComeLater(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	b.register(gw, "k:1")
	early := b.submit(gw, "k:1", "early")
	b.serve(agent, client.HostConfig{Handle: echo})
	if v := b.settled(gw, early); v.Reply != "early" || v.Outcome != events.OutcomeCompleted {
		t.Errorf("the turn is %+v", v)
	}
	b.register(gw, "k:2")
	begun := time.Now()
	if v := b.settled(gw, b.submit(gw, "k:2", "late")); v.Reply != "late" {
		t.Errorf("the turn is %+v", v)
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("a new session waited %v for its host", took)
	}
}

func TestTurnsOfOneSessionRunOneByOneAndOfDifferentOnesBesideEachOther(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	const sessions, each = 4, 5
	var together sync.WaitGroup // the first turn of each session waits for the others'
	together.Add(sessions)
	var mu sync.Mutex
	running, order := make(map[events.SessionID]int), make(map[events.SessionID]string)
	b.serve(agent, client.HostConfig{Handle: func(_ context.Context, turn *client.Turn) client.Result {
		mu.Lock()
		running[turn.Session]++
		if running[turn.Session] != 1 {
			t.Errorf("session %s runs %d turns", turn.Session, running[turn.Session])
		}
		first := order[turn.Session] == ""
		order[turn.Session] += turn.Items[0].Body.Text
		mu.Unlock()
		if first {
			together.Done()
			together.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		running[turn.Session]--
		return client.Result{}
	}})
	var last []events.ReceiptID
	for n := range sessions {
		key := fmt.Sprintf("k:%d", n)
		b.register(gw, key)
		for i := range each {
			id := b.submit(gw, key, fmt.Sprint(i))
			if i == each-1 {
				last = append(last, id)
			}
		}
	}
	for _, id := range last {
		b.settled(gw, id)
	}
	for id, got := range order {
		if got != "01234" {
			t.Errorf("session %s had its turns in the order %s", id, got)
		}
	}
}

func TestAnInterruptEndsTheTurnsContextAndTheTurnIsAborted(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	causes, started := make(chan error, 1), make(chan struct{}, 1)
	b.serve(agent, client.HostConfig{Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		if turn.Items[0].Body.Text == "next" {
			return client.Result{Reply: "went on"}
		}
		started <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return client.Result{Reply: "half"}
	}})
	b.register(gw, "k")
	id := b.submit(gw, "k", "long")
	receive(t, "the turn", started)
	ended, err := gw.Interrupt(within(t, 10*time.Second), "k", "", "enough")
	if err != nil || ended.Outcome != events.OutcomeAborted {
		t.Fatalf("interrupt: %+v, %v", ended, err)
	}
	if cause := receive(t, "the cause", causes); !errors.Is(cause, client.ErrInterrupted) {
		t.Errorf("the context ended by %v", cause)
	}
	if v := b.settled(gw, id); v.Outcome != events.OutcomeAborted || v.Reply != "half" || v.Error == "" {
		t.Errorf("the turn is %+v", v)
	}
	if v := b.settled(gw, b.submit(gw, "k", "next")); v.Reply != "went on" {
		t.Errorf("the next turn is %+v", v)
	}
}

func TestWhateverAHandlerGivesTheTurnEnds(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	results := map[string]client.Result{
		"error alone":     {Error: "no luck"},
		"unknown outcome": {Outcome: "splendid", Reply: "r"},
		"lost":            {Outcome: events.OutcomeLost},
		"huge":            {Reply: "<begin>" + strings.Repeat("ü\x01", 1<<20) + "<end>", Error: strings.Repeat("e", 1<<20), BackgroundRunning: -3},
		"not UTF-8":       {Reply: "a\xffb"},
		"aborted":         {Outcome: events.OutcomeAborted, Error: "by itself"},
	}
	b.serve(agent, client.HostConfig{Logger: quiet(), Handle: func(_ context.Context, turn *client.Turn) client.Result {
		if r, ok := results[turn.Items[0].Body.Text]; ok {
			return r
		}
		panic("I cannot go on")
	}})
	b.register(gw, "k")
	want := map[string]events.Outcome{"aborted": events.OutcomeAborted, "huge": events.OutcomeCompleted, "not UTF-8": events.OutcomeCompleted}
	results["huge"] = client.Result{Reply: results["huge"].Reply, BackgroundRunning: -3}
	for _, text := range []string{"error alone", "unknown outcome", "lost", "huge", "not UTF-8", "aborted", "panic"} {
		v := b.settled(gw, b.submit(gw, "k", text))
		outcome, ok := want[text]
		if !ok {
			outcome = events.OutcomeFailed
		}
		if v.Outcome != outcome || (outcome == events.OutcomeFailed) != (v.Error != "" && text != "aborted") {
			t.Errorf("%s: outcome %s, error %.80q; want %s", text, v.Outcome, v.Error, outcome)
		}
		if text == "huge" && (!strings.HasPrefix(v.Reply, "<begin>") || !strings.HasSuffix(v.Reply, "<end>") || !strings.Contains(v.Reply, "[...]")) {
			t.Errorf("the huge reply was cut to %.40q...", v.Reply)
		}
		if text == "panic" && !strings.Contains(v.Error, "I cannot go on") {
			t.Errorf("the panic is told as %q", v.Error)
		}
	}
}

func TestATurnThatEndsWhileTheBusIsAwayIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	started, finish := make(chan struct{}, 8), make(chan struct{})
	var calls atomic.Int32
	b.serve(agent, client.HostConfig{Handle: func(_ context.Context, turn *client.Turn) client.Result {
		calls.Add(1)
		started <- struct{}{}
		<-finish
		return client.Result{Reply: "done: " + turn.Items[0].Body.Text}
	}})
	id := b.register(gw, "k")
	r := b.submit(gw, "k", "m")
	receive(t, "the turn", started)
	b.cfg.Listen = hostPort(t, b.node.Broker().URL())
	b.stop()
	close(finish) // while nobody is there
	b.start()
	if v := b.settled(gw, r); v.Outcome != events.OutcomeCompleted || v.Reply != "done: m" {
		t.Errorf("the turn is %+v", v)
	}
	got := b.types(gw, id)
	if calls.Load() != 1 || got["turn.started"] != 1 || got["turn.ended"] != 1 || got["session.detached"] != 0 {
		t.Errorf("the handler was called %d times, the record has %v", calls.Load(), got)
	}
	go1 := b.submit(gw, "k", "again")
	if v := b.settled(gw, go1); v.Reply != "done: again" {
		t.Errorf("afterwards the turn is %+v", v)
	}
}

func TestAHostThatStopsEndsItsTurnsAndGivesItsSessionsBack(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	started := make(chan struct{}, 1)
	stop := b.serve(agent, client.HostConfig{Handle: func(ctx context.Context, _ *client.Turn) client.Result {
		started <- struct{}{}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), client.ErrHostStopping) {
			t.Errorf("the context ended by %v", context.Cause(ctx))
		}
		return client.Result{Reply: "half"}
	}})
	id := b.register(gw, "k")
	r := b.submit(gw, "k", "m")
	waiting := b.submit(gw, "k", "waits")
	receive(t, "the turn", started)
	begun := time.Now()
	if err := stop(); err != nil {
		t.Errorf("serve host: %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if v := b.settled(gw, r); v.Outcome != events.OutcomeAborted || v.Reply != "half" {
		t.Errorf("the turn is %+v", v)
	}
	await(t, "the detach", func() bool { return b.types(gw, id)["session.detached"] == 1 })
	if got := b.types(gw, id); got["session.finalized"] != 0 || got["turn.started"] != 1 {
		t.Errorf("the record has %v", got)
	}
	b.serve(agent, client.HostConfig{Handle: echo})
	if v := b.settled(gw, waiting); v.Reply != "waits" {
		t.Errorf("the item that waited got %+v", v)
	}
}

func TestAHandlerThatDoesNotHeedItsContextIsSaidToBeLeft(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	started, finish := make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- agent.ServeHost(ctx, client.HostConfig{StopGrace: 50 * time.Millisecond, Logger: quiet(), Handle: func(context.Context, *client.Turn) client.Result {
			started <- struct{}{}
			<-finish
			return client.Result{}
		}})
	}()
	b.register(gw, "k")
	b.submit(gw, "k", "m")
	receive(t, "the turn", started)
	cancel()
	if err := receive(t, "the end", done); err == nil || !strings.Contains(err.Error(), "still running") {
		t.Errorf("got %v", err)
	}
	close(finish)
}

func TestAnOfferBeyondTheCapacityIsDeclinedAndComesAgain(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	started, finish := make(chan string, 8), make(chan struct{})
	b.serve(agent, client.HostConfig{Parallel: 1, Handle: func(_ context.Context, turn *client.Turn) client.Result {
		started <- turn.Items[0].Body.Text
		<-finish
		return client.Result{}
	}})
	b.register(gw, "k:1")
	b.register(gw, "k:2")
	first := b.submit(gw, "k:1", "1")
	receive(t, "the first turn", started)
	second := b.submit(gw, "k:2", "2")
	_, err := gw.WaitReceipt(within(t, 10*time.Second), second, declinedOnce())
	if err != nil {
		t.Fatal(err)
	}
	close(finish)
	b.settled(gw, first)
	b.settled(gw, second)
}

// declinedOnce is true for an item that was offered and is queued again.
func declinedOnce() func(events.Receipt) bool {
	offered := false
	return func(r events.Receipt) bool {
		offered = offered || r.State == events.StateOffered
		return offered && r.State == events.StateQueued
	}
}

func TestASessionIdleForLongIsGivenBackAndTakenAgain(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	b.serve(agent, client.HostConfig{Handle: echo, IdleDetach: 100 * time.Millisecond})
	id := b.register(gw, "k")
	b.settled(gw, b.submit(gw, "k", "1"))
	await(t, "the detach", func() bool { return b.types(gw, id)["session.detached"] == 1 })
	if v := b.settled(gw, b.submit(gw, "k", "2")); v.Reply != "2" {
		t.Errorf("the turn is %+v", v)
	}
}

func TestAResetAndAFinalizeInTheMiddleOfATurnLeaveTheHostServing(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	started := make(chan struct{}, 1)
	b.serve(agent, client.HostConfig{Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		if text := turn.Items[0].Body.Text; text != "long" {
			return client.Result{Reply: fmt.Sprint(turn.Epoch)}
		}
		started <- struct{}{}
		<-ctx.Done()
		return client.Result{}
	}})
	b.register(gw, "k")
	for n, end := range []func(context.Context, string, string) (events.EpochAnswer, error){gw.Reset, gw.Finalize} {
		id := b.submit(gw, "k", "long")
		receive(t, "the turn", started)
		if _, err := end(within(t, 15*time.Second), "k", "over"); err != nil {
			t.Fatal(err)
		}
		if v := b.settled(gw, id); v.Outcome != events.OutcomeAborted {
			t.Errorf("the turn is %+v", v)
		}
		if v := b.settled(gw, b.submit(gw, "k", "next")); v.Reply != fmt.Sprint(n+2) {
			t.Errorf("the next turn ran in epoch %s, want %d", v.Reply, n+2)
		}
	}
}

func TestPartsAreNumberedAndLongOnesAreSplitBetweenCharacters(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	id := b.register(gw, "k")
	parts := make(chan *nats.Msg, 64)
	sub, err := gw.NATS().ChanSubscribe(events.PartAll(profile, id), parts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := gw.NATS().Flush(); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("日本", events.MaxChunk/3)
	b.serve(agent, client.HostConfig{Handle: func(_ context.Context, turn *client.Turn) client.Result {
		for _, p := range []string{"a", "", long, "z"} {
			if err := turn.Part(p); err != nil {
				return client.Result{Error: err.Error()}
			}
		}
		return client.Result{Reply: "x"}
	}})
	b.settled(gw, b.submit(gw, "k", "m"))
	var got strings.Builder
	for n := 1; !strings.HasSuffix(got.String(), "z"); n++ {
		m := receive(t, "a part", parts)
		if m.Header.Get(events.HeaderPart) != fmt.Sprint(n) || len(m.Data) > events.MaxChunk || !utf8Valid(m.Data) {
			t.Fatalf("part %d is numbered %s and has %d bytes", n, m.Header.Get(events.HeaderPart), len(m.Data))
		}
		got.Write(m.Data)
	}
	if got.String() != "a"+long+"z" {
		t.Errorf("the parts make %d bytes", got.Len())
	}
}

func utf8Valid(b []byte) bool { return strings.ToValidUTF8(string(b), "") == string(b) }
