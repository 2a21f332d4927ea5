package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/bustest"
	"keryx/internal/sessionlog"
)

// eventsEach is how many events a session of the large store has.
const eventsEach = 20

// store writes sessions with a past, as fast as the log takes them.
type store struct {
	t     *testing.T
	log   *sessionlog.Log
	batch []sessionlog.Message
	n     int
	time  time.Time
}

func (s *store) add(m sessionlog.Message) {
	s.batch = append(s.batch, m)
	if s.n++; len(s.batch) == 1000 {
		s.flush()
	}
}

func (s *store) flush() {
	s.t.Helper()
	if len(s.batch) == 0 {
		return
	}
	if _, err := s.log.AppendBatch(s.t.Context(), s.batch); err != nil {
		s.t.Fatal(err)
	}
	s.batch = s.batch[:0]
}

func (s *store) name(n events.Name, id events.SessionID) {
	s.t.Helper()
	body, err := events.MarshalData(events.NameRecord{Name: n, Session: id, Epoch: 1, Owner: "gw"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.add(sessionlog.Message{Subject: events.IDSubject("default", n), Data: body})
}

func (s *store) event(id events.SessionID, ordinal int, typ events.Type, turn events.TurnID, data any) {
	s.t.Helper()
	body, err := events.MarshalData(data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.time = s.time.Add(time.Millisecond)
	header := nats.Header{}
	for name, v := range map[string]string{
		"specversion": "1.0", "id": events.NewID(), "type": string(typ), "source": events.Source("default", "gw"),
		"subject": string(id), "time": s.time.UTC().Format(time.RFC3339Nano), "dataschema": typ.Schema(),
		"datacontenttype": "application/json", events.ExtOrdinal: strconv.Itoa(ordinal), events.ExtEpoch: "1",
		events.ExtTurn: string(turn), events.ExtCausation: events.NewID(),
	} {
		if v != "" {
			header.Set("ce-"+name, v)
		}
	}
	s.add(sessionlog.Message{Subject: events.LogSubject("default", id.Scope()), Header: header, Data: body})
}

// fill writes sessions whose events lie spread over the log, as those of sessions do
// that live side by side. It returns their ids.
func (s *store) fill(sessions int) []events.SessionID {
	s.t.Helper()
	ids := make([]events.SessionID, sessions)
	for i := range ids {
		ids[i] = events.SessionID(events.NewID())
		names := events.Names{
			GatewaySessionKey: events.GatewaySessionKey(fmt.Sprint("k:", i)), StoredSessionID: events.StoredSessionID(fmt.Sprint("s:", i)),
		}
		for _, n := range names.Records() {
			s.name(n, ids[i])
		}
		s.event(ids[i], 1, events.TypeSessionRegistered, "", events.SessionRegistered{
			Names: names, Owner: "gw", Policy: events.Policy{Hosts: []events.PrincipalName{"sh"}},
		})
	}
	for round := range (eventsEach - 1) / 4 {
		for i, id := range ids {
			s.turn(id, 2+4*round, i)
		}
	}
	for _, id := range ids {
		for n := 2 + 4*((eventsEach-1)/4); n <= eventsEach; n++ {
			s.event(id, n, events.TypeSessionAliased, "", events.SessionAliased{Names: events.Names{Home: fmt.Sprint("/home/", n)}, Owner: "gw"})
		}
	}
	s.flush()
	return ids
}

// turn writes the four events of one message and its turn.
func (s *store) turn(id events.SessionID, ordinal, i int) {
	s.t.Helper()
	receipt, turn := events.ReceiptID(events.NewID()), events.TurnID(events.NewID())
	items := []events.ReceiptID{receipt}
	s.event(id, ordinal, events.TypeContinuationQueued, "", events.ContinuationQueued{Item: events.Item{
		Receipt: receipt, Kind: events.ItemUser, Mode: events.ModeEnqueue, Sender: "gw", Epoch: 1, QueuedAt: s.time,
		OnReset: events.OnResetCarry, Body: events.Body{Text: fmt.Sprint("message ", ordinal, " of session ", i)},
	}})
	s.event(id, ordinal+1, events.TypeTurnStarted, turn, events.TurnStarted{Turn: turn, Offer: events.OfferID(events.NewID()), Items: items, Host: "sh", Instance: "i"})
	s.event(id, ordinal+2, events.TypeTurnEnded, turn, events.TurnEnded{Turn: turn, Outcome: events.OutcomeCompleted, Settled: items, Reply: "done"})
	s.event(id, ordinal+3, events.TypeSessionIdle, turn, events.SessionIdle{Turn: turn, Reason: events.OutcomeCompleted, Since: s.time})
}

// ready starts a bus and returns how long it took until commands are answered.
func (b *bench) ready() (*process, time.Duration) {
	b.t.Helper()
	run := filepath.Join(b.store(), "run", "http")
	_ = os.Remove(run) // of the one before
	begun := time.Now()
	p := b.start("", "bus", "serve", "--dir", b.store(), "--listen", b.addr)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(2 * time.Minute); ; {
		if addr, err := os.ReadFile(run); err == nil {
			if r, err := http.Get("http://" + strings.TrimPrefix(strings.TrimSpace(string(addr)), "http://") + "/readyz"); err == nil {
				_ = r.Body.Close()
				if r.StatusCode == http.StatusOK {
					return p, time.Since(begun)
				}
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatal("the bus is not ready after two minutes")
		}
	}
}

// resident returns the memory of a process in MiB.
func (p *process) resident() float64 {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return kib / 1024
}

// worked returns how much processor time a process has used; /proc counts in hundredths
// of a second.
func (p *process) worked() time.Duration {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		p.t.Fatal(err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// TestALargeStoreStartsFromItsIndexAndStaysSmall serves a store of many idle sessions;
// KERYX_SESSIONS asks for more than a test should take each time (design section 11:
// ready in 2 s with 50,000 sessions of 20 events; 200 MB and 1 % of a core for 10,000).
func TestALargeStoreStartsFromItsIndexAndStaysSmall(t *testing.T) {
	t.Parallel()
	n := 1000
	if asked, err := strconv.Atoi(os.Getenv("KERYX_SESSIONS")); err == nil {
		n = asked
	}
	b := newBench(t)
	ids := b.filled(n)

	bus, scanned := b.ready()
	if code := bus.terminate(); code != 0 {
		t.Errorf("the bus exited %d", code)
	}
	bus, indexed := b.ready()
	b.away(time.Second)
	memory, before := bus.resident(), bus.worked()
	const look = 5 * time.Second
	b.away(look)
	load := float64(bus.worked()-before) / float64(look)
	b.looksRight(ids)
	bus.kill()
	bus, killed := b.ready()
	b.looksRight(ids)
	t.Logf("%d sessions, %d events: ready in %v from the whole log, %v from the index, %v after a kill; %.0f MiB, %.2f %% of a core when idle",
		n, n*eventsEach, scanned.Round(time.Millisecond), indexed.Round(time.Millisecond), killed.Round(time.Millisecond), memory, 100*load)
	if n <= 10_000 && memory > 200 {
		t.Errorf("%d idle sessions take %.0f MiB, more than 200", n, memory)
	}
	if load > 0.01 {
		t.Errorf("%d idle sessions take %.2f %% of a core, more than 1", n, 100*load)
	}
	bus.terminate()
}

// filled makes a store with so many sessions.
func (b *bench) filled(n int) []events.SessionID {
	b.t.Helper()
	br := bustest.Broker(b.t, bustest.Dir(b.store()))
	log, err := sessionlog.Open(b.t.Context(), bustest.System(b.t, br))
	if err != nil {
		b.t.Fatal(err)
	}
	s := &store{t: b.t, log: log, time: time.Now().Add(-time.Hour)}
	begun := time.Now()
	ids := s.fill(n)
	b.t.Logf("%d messages written in %v", s.n, time.Since(begun).Round(time.Millisecond))
	if err := br.Stop(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return ids
}

// looksRight asks for what a store of idle sessions should say.
func (b *bench) looksRight(ids []events.SessionID) {
	b.t.Helper()
	creds, err := client.ReadCredentials(b.creds("gw"))
	if err != nil {
		b.t.Fatal(err)
	}
	gw, err := client.Connect(b.t.Context(), client.Config{URL: b.url(), Credentials: creds, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = gw.Close() }()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	seen := 0
	for s, err := range gw.Sessions(ctx, events.SessionList{}) {
		if err != nil {
			b.t.Fatal(err)
		}
		if s.LastOrd != eventsEach || s.Turns != (eventsEach-1)/4 {
			b.t.Errorf("session %s is listed with ordinal %d and %d turns", s.Session, s.LastOrd, s.Turns)
		}
		seen++
	}
	if seen != len(ids) {
		b.t.Errorf("%d sessions are listed, want %d", seen, len(ids))
	}
	for range 5 {
		i := rand.IntN(len(ids))
		v, err := gw.Show(ctx, fmt.Sprint("s:", i))
		if err != nil || v.Session != ids[i] || v.Names.Home != fmt.Sprint("/home/", eventsEach) {
			b.t.Errorf("s:%d is shown as %s in %q, %v; it is %s", i, v.Session, v.Names.Home, err, ids[i])
		}
		for turn, err := range gw.Turns(ctx, string(ids[i])) {
			if err != nil {
				b.t.Fatal(err)
			}
			if got, err := gw.Turn(ctx, turn.Turn); err != nil || got.Session != ids[i] || got.Reply != "done" {
				b.t.Errorf("turn %s is %+v, %v", turn.Turn, got, err)
			}
		}
	}
}
