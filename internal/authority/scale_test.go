package authority_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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
	before := memory(t)
	o := newOrder()
	begun := time.Now()
	leave := b.serveUntil(b.connect("agent", events.RoleHost), client.HostConfig{LeaseTTL: time.Minute, Handle: o.take})
	o.await(t, 3*n)
	took := time.Since(begun)
	ids := make([]events.SessionID, n)
	for i := range n { // the ends are reported, and nothing is owed any more
		b.await("a session to be at rest", func() bool {
			v := do[events.SessionView](t, gw, events.CmdSessionShow, events.SessionShow{To: fmt.Sprint("k:", i)})
			ids[i] = v.Session
			return v.Turn == "" && v.Turns == 3 && v.Pending == 0
		})
	}
	after := memory(t)
	t.Logf("%d sessions, %d turns in %v (%.0f a second); resident %d MB before, %d MB after, at most %d MB; %.1f KB a turn",
		n, 3*n, took.Round(time.Millisecond), float64(3*n)/took.Seconds(), before.now>>20, after.now>>20, after.peak>>20,
		float64(after.now-before.now)/float64(3*n)/1024)
	leave()
	rest := memory(t)
	t.Logf("resident %d MB once the host has left; %.1f KB a session more than before its three turns", rest.now>>20,
		float64(rest.now-before.now)/float64(n)/1024)
	for i, id := range ids {
		if got := o.of(id); !slices.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("session %d ran %v", i, got)
		}
	}
}

// order is what the turns of a host's sessions were about, in their order.
type order struct {
	mu   sync.Mutex
	seen map[events.SessionID][]string
	done atomic.Int64
}

func newOrder() *order { return &order{seen: make(map[events.SessionID][]string)} }

func (o *order) take(_ context.Context, turn *client.Turn) client.Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[turn.Session] = append(o.seen[turn.Session], turn.Items[0].Body.Text)
	o.done.Add(1)
	return client.Result{}
}

func (o *order) of(id events.SessionID) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[id]
}

func (o *order) await(t *testing.T, turns int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(20*time.Second + time.Duration(turns)*10*time.Millisecond); o.done.Load() < int64(turns); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d of %d turns ran", o.done.Load(), turns)
		}
	}
}

// resident is how much memory this process, bus and host, has in use, in bytes.
type resident struct{ now, peak int64 }

func memory(t *testing.T) (m resident) {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		for name, into := range map[string]*int64{"VmRSS:": &m.now, "VmHWM:": &m.peak} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				*into = kb << 10
			}
		}
	}
	return m
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
// in the host's hands, with 100 sessions working, and beside it raw synced publishes to the
// same server: between an end and an offer are three of them.
func BenchmarkTurnEndToNextOffer(b *testing.B) {
	bus := startBus(b)
	gw, agent := bus.connect("gw", events.RoleGateway), bus.connect("agent", events.RoleHost)
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
	l := &lag{ended: make(map[events.SessionID]time.Time), left: b.N, all: make(chan struct{})}
	p := agent.Principal()
	sub, err := agent.NATS().Subscribe(events.HostSubject(p.Profile, p.Name, agent.Instance(), events.HostOffer), func(m *nats.Msg) {
		var o events.Offer
		if err := json.Unmarshal(m.Data, &o); err != nil {
			b.Error(err)
		}
		l.offered(o.Session, time.Now())
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	b.ResetTimer()
	bus.serveWith(agent, client.HostConfig{Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		select { // a turn that works
		case <-ctx.Done():
		case <-time.After(time.Second + rand.N(time.Second)):
		}
		l.end(turn.Session)
		return client.Result{}
	}})
	raw := rawUntil(b, bus, l.all)
	l.mu.Lock()
	defer l.mu.Unlock()
	report(b, "offer", l.took)
	report(b, "raw", raw)
}

// lag is how long after a turn's end the next offer came.
type lag struct {
	mu    sync.Mutex
	ended map[events.SessionID]time.Time
	took  []time.Duration
	left  int
	all   chan struct{}
}

func (l *lag) end(id events.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left--; l.left == 0 {
		close(l.all)
	}
	l.ended[id] = time.Now()
}

func (l *lag) offered(id events.SessionID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.ended[id]; ok {
		l.took = append(l.took, now.Sub(at))
		delete(l.ended, id)
	}
}

// rawUntil publishes now and then to a plain stream of the same server, until done.
func rawUntil(b *testing.B, bus *bus, done <-chan struct{}) (took []time.Duration) {
	b.Helper()
	js := rawStream(b, bus)
	body := make([]byte, 700)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return took
		case <-tick.C:
		}
		begun := time.Now()
		if _, err := js.Publish(b.Context(), "raw.x", body); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
}

func report(b *testing.B, what string, took []time.Duration) {
	b.Helper()
	if slices.Sort(took); len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms-"+what)
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms-"+what)
	}
}
