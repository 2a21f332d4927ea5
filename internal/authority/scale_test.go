package authority_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// TestManySessionsWithABacklogAreSettledInOrder queues three messages in each of many
// sessions and attaches hosts at once. KERYX_SESSIONS asks for more than a test machine
// should take each time.
func TestManySessionsWithABacklogAreSettledInOrder(t *testing.T) {
	t.Parallel()
	n := 200 / slow
	if asked, err := strconv.Atoi(os.Getenv("KERYX_SESSIONS")); err == nil {
		n = asked
	}
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	each(n, func(i int) {
		key := fmt.Sprint("k:", i)
		if err := gw.Do(t.Context(), events.CmdSessionRegister, events.Register{Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}}, nil); err != nil {
			t.Errorf("register: %v", err)
		}
		for m := range 3 {
			if err := gw.Do(t.Context(), events.CmdContinuationSubmit, events.Submit{To: key, Body: events.Body{Text: strconv.Itoa(m)}}, nil); err != nil {
				t.Errorf("submit: %v", err)
			}
		}
	})
	var mu sync.Mutex
	seen := make(map[events.SessionID][]string)
	var done atomic.Int64
	begun := time.Now()
	b.serveWith(b.connect("agent", events.RoleHost), client.HostConfig{LeaseTTL: time.Minute, Handle: func(_ context.Context, turn *client.Turn) client.Result {
		mu.Lock()
		seen[turn.Session] = append(seen[turn.Session], turn.Items[0].Body.Text)
		mu.Unlock()
		done.Add(1)
		return client.Result{}
	}})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(20*time.Second + time.Duration(n)*20*time.Millisecond); done.Load() < int64(3*n); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d of %d turns ran", done.Load(), 3*n)
		}
	}
	t.Logf("%d sessions, %d turns in %v", n, 3*n, time.Since(begun).Round(time.Millisecond))
	mu.Lock()
	defer mu.Unlock()
	for id, texts := range seen {
		if !slices.Equal(texts, []string{"0", "1", "2"}) {
			t.Errorf("session %s ran %v", id, texts)
		}
	}
}

// each calls f for 0 to n-1, up to 32 at once.
func each(n int, f func(int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(n, 32) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// BenchmarkTurnEndToNextOffer measures from the report of a turn's end to the next offer
// in the host's hands, with 100 sessions working.
func BenchmarkTurnEndToNextOffer(b *testing.B) {
	bus := startBus(b)
	gw := bus.connect("gw", events.RoleGateway)
	agent := bus.connect("agent", events.RoleHost)
	var mu sync.Mutex
	var took []time.Duration
	ended := make(map[events.SessionID]time.Time)
	p := agent.Principal()
	sub, err := agent.NATS().Subscribe(events.HostSubject(p.Profile, p.Name, agent.Instance(), events.HostOffer), func(m *nats.Msg) {
		now := time.Now()
		var o events.Offer
		if err := json.Unmarshal(m.Data, &o); err != nil {
			b.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if at, ok := ended[o.Session]; ok {
			took = append(took, now.Sub(at))
			delete(ended, o.Session)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	var left atomic.Int64
	left.Store(int64(b.N))
	all := make(chan struct{})
	bus.serveWith(agent, client.HostConfig{Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		select { // a turn that works
		case <-ctx.Done():
		case <-time.After(time.Second + rand.N(time.Second)):
		}
		if left.Add(-1) == 0 {
			close(all)
		}
		mu.Lock()
		ended[turn.Session] = time.Now()
		mu.Unlock()
		return client.Result{}
	}})
	const sessions = 100
	each(sessions, func(i int) {
		key := fmt.Sprint("k:", i)
		if err := gw.Do(b.Context(), events.CmdSessionRegister, events.Register{Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}}, nil); err != nil {
			b.Error(err)
		}
		for range b.N/sessions + 1 {
			if err := gw.Do(b.Context(), events.CmdContinuationSubmit, events.Submit{To: key}, nil); err != nil {
				b.Error(err)
			}
		}
	})
	<-all
	mu.Lock()
	defer mu.Unlock()
	if slices.Sort(took); len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
}
