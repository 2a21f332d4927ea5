package authority_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/lifecycle"
)

// hammered are sessions to which messages are sent in rounds, beside each other.
const hammered = 10

// rounds is how many of one kind each hammered session goes through. KERYX_TEST_RUNS asks
// for so many of each kind in all; a release is tried with 1,000.
func rounds(t *testing.T) int {
	t.Helper()
	v, ok := os.LookupEnv("KERYX_TEST_RUNS")
	if !ok {
		return max(10/slow, 2)
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("KERYX_TEST_RUNS=%q is not a number of runs", v)
	}
	return (n + hammered - 1) / hammered
}

// maxIdle is how long a session may be attached and at rest while something waits.
const maxIdle = time.Second

// checkNeverWedged folds a session's record and looks at what each event left undone, and
// for how long.
func checkNeverWedged(t *testing.T, c *client.Conn, id events.SessionID) {
	t.Helper()
	var s lifecycle.State
	running := events.TurnID("")
	rs := record(t, c, id.Scope())
	for i, r := range rs {
		if err := lifecycle.Fold(&s, r); err != nil {
			t.Fatal(err)
		}
		if r.Type == events.TypeTurnStarted && running != "" {
			t.Errorf("turn %s began while %s ran", r.Turn, running)
		}
		if running = ""; s.Running() != nil {
			running = s.Running().Turn
		}
		until := time.Now()
		if i+1 < len(rs) {
			until = rs[i+1].Time
		}
		if owed, _ := lifecycle.Owed(&s, until.Add(-maxIdle), events.NewID); until.Sub(r.Time) > maxIdle && len(owed.Drafts) > 0 {
			t.Errorf("session %s owed %s for %v after ordinal %s (%s)", id, owed.Drafts[0].Type, until.Sub(r.Time), r.Ordinal, r.Type)
		}
	}
	if s.WaitingFor() != "" {
		t.Errorf("session %s is left waiting for %s", id, s.WaitingFor())
	}
}

// instants are when a second message comes, and what happens to the session then.
var instants = map[string]func(h *hammer, first events.ReceiptID){
	"at the start of a turn": func(h *hammer, first events.ReceiptID) {
		h.until(first, events.StateOffered)
	},
	"at the end of a turn": func(h *hammer, _ events.ReceiptID) {
		select {
		case <-h.ending: // the handler returns now
		case <-time.After(20 * time.Second):
			h.t.Errorf("no turn of %s ended", h.key)
		}
	},
	"at a detach": func(h *hammer, first events.ReceiptID) {
		h.until(first, events.StateSettled)
		h.pause(idleDetach - time.Millisecond + rand.N(3*time.Millisecond))
	},
	"at a reset": func(h *hammer, first events.ReceiptID) {
		h.until(first, []events.ItemState{events.StateQueued, events.StateAccepted, events.StateSettled}[rand.N(3)])
		h.others.Go(func() {
			if _, err := h.gw.Reset(h.ctx, h.key, "round"); err != nil {
				h.t.Errorf("reset %s: %v", h.key, err)
			}
		})
	},
}

const idleDetach = 10 * time.Millisecond

// hammer sends messages to a session at one instant.
type hammer struct {
	t      *testing.T
	ctx    context.Context
	gw     *client.Conn
	key    string
	ending chan struct{}
	others sync.WaitGroup
}

func (h *hammer) pause(d time.Duration) {
	at := time.NewTimer(d)
	defer at.Stop()
	<-at.C
}

func (h *hammer) submit(mode events.Mode) events.ReceiptID {
	r, err := h.gw.Submit(h.ctx, events.Submit{To: h.key, Mode: mode, Allow: []events.Mode{events.ModeEnqueue}})
	if err != nil {
		h.t.Errorf("submit to %s: %v", h.key, err)
	}
	return r.ID
}

// until waits for a state of an item, or its end.
func (h *hammer) until(id events.ReceiptID, state events.ItemState) {
	r, err := h.gw.WaitReceipt(h.ctx, id, func(r events.Receipt) bool { return r.State == state || r.Over() })
	if err != nil {
		h.t.Errorf("wait in %s for %s: %v (it is %s)", h.key, state, err, r.State)
	}
}

func (h *hammer) round(n int, instant func(*hammer, events.ReceiptID)) {
	modes := []events.Mode{events.ModeEnqueue, events.ModeInterrupt, events.ModeMerge, events.ModeSteer}
	for len(h.ending) > 0 {
		<-h.ending
	}
	first := h.submit(events.ModeEnqueue)
	instant(h, first)
	h.pause(rand.N(time.Millisecond))
	second := h.submit(modes[n%len(modes)])
	h.others.Wait()
	h.until(first, events.StateSettled)
	h.until(second, events.StateSettled)
}

func TestNoRaceLeavesASessionIdleWithSomethingToDeliver(t *testing.T) {
	t.Parallel()
	for name, instant := range instants {
		t.Run("a message "+name, func(t *testing.T) {
			t.Parallel()
			hammerAll(t, instant)
		})
	}
}

func hammerAll(t *testing.T, instant func(*hammer, events.ReceiptID)) {
	t.Helper()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var ids [hammered]events.SessionID
	ending := make(map[events.SessionID]chan struct{}, hammered)
	for i := range ids {
		ids[i] = register(t, gw, fmt.Sprint("k:", i), events.Policy{})
		ending[ids[i]] = make(chan struct{}, 16)
	}
	for _, name := range []events.PrincipalName{"agent", "second"} { // both want every session
		b.serveWith(b.connect(name, events.RoleHost), client.HostConfig{IdleDetach: idleDetach, Handle: func(ctx context.Context, turn *client.Turn) client.Result {
			select {
			case <-ctx.Done():
			case <-time.After(rand.N(3 * time.Millisecond)):
			}
			select {
			case ending[turn.Session] <- struct{}{}:
			default:
			}
			return client.Result{}
		}})
	}
	var wg sync.WaitGroup
	n := rounds(t)
	for i, id := range ids {
		h := &hammer{t: t, ctx: ctx, gw: gw, key: fmt.Sprint("k:", i), ending: ending[id]}
		wg.Go(func() {
			for r := 0; r < n && ctx.Err() == nil; r++ {
				h.round(r, instant)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		checkNeverWedged(t, gw, id)
	}
}

func TestTwoNamesOfOneSessionNeverRunTwoTurnsAtOnce(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, agent := b.connect("gw", events.RoleGateway), b.connect("agent", events.RoleHost)
	var running [hammered]atomic.Int32
	index := sync.Map{} // session to place
	b.serveWith(agent, client.HostConfig{Handle: func(_ context.Context, turn *client.Turn) client.Result {
		i, _ := index.Load(turn.Session)
		place := &running[i.(int)]
		if place.Add(1) != 1 {
			t.Errorf("two turns of session %s run at once", turn.Session)
		}
		defer place.Add(-1)
		return client.Result{}
	}})
	var wg sync.WaitGroup
	ids := make([]events.SessionID, hammered)
	each := max(rounds(t)/2, 1)
	for i := range hammered {
		names := []string{fmt.Sprint("a:", i), fmt.Sprint("b:", i)}
		ids[i] = register(t, gw, names[0], events.Policy{})
		index.Store(ids[i], i)
		do[events.Registered](t, gw, events.CmdSessionAlias, events.Alias{To: names[0], Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(names[1])}})
		for _, name := range names {
			wg.Go(func() {
				var last events.Receipt
				for range each {
					if err := gw.Do(t.Context(), events.CmdContinuationSubmit, events.Submit{To: name}, &last); err != nil {
						t.Errorf("submit to %s: %v", name, err)
						return
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if _, err := gw.WaitReceipt(ctx, last.ID, events.Receipt.Over); err != nil {
					t.Errorf("wait for the last of %s: %v", name, err)
				}
			})
		}
	}
	wg.Wait()
	for _, id := range ids {
		if n := count(record(t, gw, id.Scope()), events.TypeTurnStarted); n != 2*each {
			t.Errorf("session %s ran %d turns, want %d", id, n, 2*each)
		}
		checkNeverWedged(t, gw, id)
	}
}
