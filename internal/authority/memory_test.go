package authority_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/authority"
	"keryx/internal/bustest"
	"keryx/internal/lifecycle"
)

// quickly takes sessions out of memory as soon as they do nothing.
func quickly(c *authority.Config) {
	c.UnloadAfter, c.SweepEvery = time.Millisecond, time.Millisecond
}

// unloaded waits until no session is in memory.
func unloaded(t *testing.T, s *standing) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.After(10 * time.Second); s.auth.InMemory() > 0; {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d sessions are still in memory", s.auth.InMemory())
		}
	}
}

func TestASessionThatLeftMemoryIsAnsweredAsBefore(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	s := stand(t, b, quickly)
	awaitActive(t, s, 5*time.Second)
	gw := connectTo(t, b, "gw", events.RoleGateway)
	id := register(t, gw, "k:1", events.Policy{Hosts: []events.PrincipalName{"nobody"}})
	keyed := events.Submit{To: "k:1", IdempotencyKey: "once", Body: events.Body{Text: "hello"}}
	r, err := gw.Submit(t.Context(), keyed)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := gw.Show(t.Context(), "k:1")
	if err != nil {
		t.Fatal(err)
	}
	unloaded(t, s)
	for sum, err := range gw.Sessions(t.Context(), events.SessionList{}) {
		if err != nil || sum.Session != id || sum.Pending != 1 || sum.LastSeq != shown.LastSeq {
			t.Errorf("the list has %+v, %v", sum, err)
		}
	}
	tips, err := gw.Tips(t.Context(), id.Scope())
	if err != nil || len(tips) != 1 || tips[0].Ordinal != shown.LastOrd {
		t.Errorf("tips %v, %v", tips, err)
	}
	if s.auth.InMemory() != 0 {
		t.Error("a list or a tip brought a session into memory")
	}
	if again, err := gw.Submit(t.Context(), keyed); err != nil || again.ID != r.ID {
		t.Errorf("the key leads to %v, %v, want %s", again, err, r.ID)
	}
	unloaded(t, s)
	if got, err := gw.Receipt(t.Context(), r.ID); err != nil || got != r {
		t.Errorf("the receipt is %+v, %v, want %+v", got, err, r)
	}
	unloaded(t, s)
	if again := register(t, gw, "k:1", events.Policy{}); again != id {
		t.Errorf("the key is session %s, want %s", again, id)
	}
	unloaded(t, s)
	if now, err := gw.Show(t.Context(), "k:1"); err != nil || now.LastOrd != shown.LastOrd || len(now.Queue) != 1 {
		t.Errorf("shown %+v, %v", now, err)
	}
}

func TestASessionThatLeftMemoryDoesWhatItOwesInTime(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	s := stand(t, b, quickly)
	awaitActive(t, s, 5*time.Second)
	gw := connectTo(t, b, "gw", events.RoleGateway)
	id := register(t, gw, "k:1", events.Policy{IdleTTLMS: 700})
	unloaded(t, s)
	begun := time.Now()
	for len(record(t, gw, id.Scope())) < 2 {
		if time.Since(begun) > 5*time.Second {
			t.Fatal("the session was not finalized by its idle ttl")
		}
	}
	if got := types(record(t, gw, id.Scope())); got[1] != "session.finalized" {
		t.Errorf("the record is %v", got)
	}
}

func TestWhatEndedLongAgoIsAnsweredFromTheLog(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	s := stand(t, b, func(*authority.Config) {})
	awaitActive(t, s, 5*time.Second)
	gw, agent := connectTo(t, b, "gw", events.RoleGateway), connectTo(t, b, "agent", events.RoleHost)
	op := connectTo(t, b, "op", events.RoleOperator)
	id := register(t, gw, "k:1", events.Policy{Hosts: []events.PrincipalName{"agent"}})
	const n = lifecycle.KeptTurns + 10
	first := submit(t, gw, "k:1", "0")
	for i := 1; i < n; i++ {
		submit(t, gw, "k:1", fmt.Sprint(i))
	}
	serveUntilEnd(t, agent)
	last, turns := turnsOf(t, gw, "k:1")
	for limit := time.After(20 * time.Second); turns < n || last.Outcome == ""; last, turns = turnsOf(t, gw, "k:1") {
		select {
		case <-limit:
			t.Fatalf("%d turns", turns)
		case <-time.After(20 * time.Millisecond):
		}
	}
	r, err := gw.Receipt(t.Context(), first.ID)
	if err != nil || r.State != events.StateSettled || r.Turn != last.Turn {
		t.Errorf("the first receipt is %+v, %v; its turn is %s", r, err, last.Turn)
	}
	turn, err := gw.Turn(t.Context(), last.Turn)
	if err != nil || turn.Reply != "done" || turn.Outcome != events.OutcomeCompleted {
		t.Errorf("the first turn is %+v, %v", turn, err)
	}
	end := events.End{Session: id, Turn: last.Turn, Outcome: events.OutcomeCompleted, Fence: events.Fence{Generation: 1, Sequence: 1}}
	refused(t, agent, events.CmdTurnEnd, end, events.CodeStaleFence) // not unknown_turn
	ended := do[events.Ended](t, op, events.CmdTurnInterrupt, events.Interrupt{To: "k:1", Turn: last.Turn})
	if ended.Outcome != events.OutcomeCompleted {
		t.Errorf("an interrupt of the first turn is answered %+v", ended)
	}
	refused(t, gw, events.CmdContinuationCancel, events.Cancel{Receipt: first.ID}, events.CodeWrongState)
}

// turnsOf returns the first turn of a session, and how many there are.
func turnsOf(t *testing.T, c *client.Conn, to string) (first events.TurnView, n int) {
	t.Helper()
	for turn, err := range c.Turns(t.Context(), to) {
		if err != nil {
			t.Fatal(err)
		}
		first = turn
		n++
	}
	return first, n
}

// serveUntilEnd runs a host whose turns end at once.
func serveUntilEnd(t *testing.T, c *client.Conn) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- c.ServeHost(ctx, client.HostConfig{Handle: func(context.Context, *client.Turn) client.Result {
			return client.Result{Reply: "done"}
		}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve host: %v", err)
		}
	})
}
