package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/client"
	"keryx/events"
	"keryx/internal/lifecycle"
)

// rounds is how often the bus is killed, unless KERYX_TEST_RUNS asks for more.
const rounds = 4

func killRounds(t *testing.T) int {
	t.Helper()
	asked := os.Getenv("KERYX_TEST_RUNS")
	if asked == "" {
		return rounds
	}
	n, err := strconv.Atoi(asked)
	if err != nil {
		t.Fatalf("KERYX_TEST_RUNS: %v", err)
	}
	return n
}

// connect connects a principal of the bench to its bus; the connection outlives the bus.
func (b *bench) connect(name string) *client.Conn {
	b.t.Helper()
	creds, err := client.ReadCredentials(b.creds(name))
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := client.Connect(b.t.Context(), client.Config{URL: b.url(), Credentials: creds, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() }) // the bus may be gone
	return c
}

// load keeps sessions busy and remembers what it was promised.
type load struct {
	t    *testing.T
	gw   *client.Conn
	mu   sync.Mutex
	acks map[events.SessionID]map[events.ReceiptID]events.Sequence
}

// run submits to one session until it is over; now and then it resets the session.
func (l *load) run(over <-chan struct{}, key string) {
	names := events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}
	s, err := l.gw.Register(l.t.Context(), names, events.Policy{Hosts: []events.PrincipalName{"sh"}})
	if err != nil {
		l.t.Errorf("register %s: %v", key, err)
		return
	}
	for i := 0; ; i++ {
		select {
		case <-over:
			return
		default:
		}
		if i%40 == 39 {
			if _, err := l.gw.Reset(l.t.Context(), key, "another topic"); err != nil {
				l.t.Errorf("reset %s: %v", key, err)
			}
			continue
		}
		r, err := l.gw.Submit(l.t.Context(), events.Submit{
			To: key, Body: events.Body{Text: strconv.Itoa(i)}, IdempotencyKey: strconv.Itoa(i),
		})
		if events.CodeOf(err) == events.CodeQueueFull {
			continue
		}
		if err != nil {
			l.t.Errorf("submit %d to %s: %v", i, key, err)
			return
		}
		l.mu.Lock()
		if l.acks[s.Session] == nil {
			l.acks[s.Session] = map[events.ReceiptID]events.Sequence{}
		}
		l.acks[s.Session][r.ID] = r.Sequence
		l.mu.Unlock()
	}
}

// check compares the record of each session with what was promised, and what the bus
// shows with a fold from scratch. It returns how many events there are.
func (l *load) check(before map[events.SessionID][]events.Record) (now map[events.SessionID][]events.Record, n int) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	now = map[events.SessionID][]events.Record{}
	for id, acks := range l.acks {
		rs := recordOf(l.t, l.gw, id)
		now[id] = rs
		n += len(rs)
		for i, old := range before[id] {
			if i >= len(rs) || rs[i].ID != old.ID || rs[i].Sequence != old.Sequence || string(rs[i].Data) != string(old.Data) {
				l.t.Fatalf("session %s: event %d is another one than before the kill", id, i+1)
			}
		}
		checkOnce(l.t, id, rs, acks)
	}
	return now, n
}

func recordOf(t *testing.T, c *client.Conn, id events.SessionID) (out []events.Record) {
	t.Helper()
	for from := events.Sequence(0); ; {
		page, err := c.Page(t.Context(), id.Scope(), from, 0)
		if err != nil {
			t.Fatalf("page of %s: %v", id, err)
		}
		out = append(out, page.Records...)
		if page.Next == 0 {
			return out
		}
		from = page.Next
	}
}

// checkOnce wants dense ordinals, each command's event once, and each receipt that was
// answered at the place that was answered.
func checkOnce(t *testing.T, id events.SessionID, rs []events.Record, acks map[events.ReceiptID]events.Sequence) {
	t.Helper()
	queued := map[events.ReceiptID]events.Sequence{}
	for i, r := range rs {
		if int(r.Ordinal) != i+1 {
			t.Fatalf("session %s: ordinal %d at place %d", id, r.Ordinal, i+1)
		}
		if r.Type != events.TypeContinuationQueued {
			continue
		}
		d, err := events.DataOf[events.ContinuationQueued](r)
		if err != nil {
			t.Fatal(err)
		}
		if d.Item.Sequence != 0 { // carried over a reset
			continue
		}
		if _, twice := queued[d.Item.Receipt]; twice {
			t.Errorf("session %s: receipt %s was queued twice", id, d.Item.Receipt)
		}
		queued[d.Item.Receipt] = r.Sequence
	}
	for receipt, seq := range acks {
		if queued[receipt] != seq {
			t.Errorf("session %s: receipt %s was answered with sequence %d and is at %d", id, receipt, seq, queued[receipt])
		}
	}
}

// folded compares what the bus shows of idle sessions with a fold of their logs.
func (l *load) folded() {
	l.t.Helper()
	for id := range l.acks {
		shown, err := l.gw.Show(l.t.Context(), string(id))
		if err != nil {
			l.t.Fatal(err)
		}
		var s lifecycle.State
		for _, r := range recordOf(l.t, l.gw, id) {
			if err := lifecycle.Fold(&s, r); err != nil {
				l.t.Fatal(err)
			}
		}
		if diff := cmp.Diff(asJSON(l.t, s.View()), asJSON(l.t, shown)); diff != "" {
			l.t.Errorf("session %s (-fold of the log +shown):\n%s", id, diff)
		}
	}
}

func asJSON(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// serveTurns runs a host that completes each turn at once.
func (b *bench) serveTurns() (stop func()) {
	sh := b.connect("sh")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- sh.ServeHost(ctx, client.HostConfig{Logger: slog.New(slog.DiscardHandler), Handle: func(context.Context, *client.Turn) client.Result {
			return client.Result{Reply: "done"}
		}})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("serve host: %v", err)
		}
	}
}

func TestTheBusKilledAtRandomMomentsKeepsEveryAnswerOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bus := b.serving()
	l := &load{t: t, gw: b.connect("gw"), acks: map[events.SessionID]map[events.ReceiptID]events.Sequence{}}
	stopHost := b.serveTurns()
	over := make(chan struct{})
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() { l.run(over, fmt.Sprint("k:", i)) })
	}
	var seen map[events.SessionID][]events.Record
	for round, of := 0, killRounds(t); round < of; round++ {
		b.away(20*time.Millisecond + rand.N(600*time.Millisecond))
		bus.kill()
		bus = b.serving()
		if round%max(1, of/10) == 0 { // each look reads everything
			seen, _ = l.check(seen)
		}
	}
	close(over)
	work.Wait()
	stopHost()
	seen, n := l.check(seen)
	l.folded()
	t.Logf("%d events in %d sessions", n, len(seen))
	if bus.terminate(); n < 100 {
		t.Errorf("only %d events: there was no load", n)
	}
}
