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

	"keryx/client"
	"keryx/events"
	"keryx/internal/bustest"
)

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
		n, n*bustest.EventsEach, scanned.Round(time.Millisecond), indexed.Round(time.Millisecond), killed.Round(time.Millisecond), memory, 100*load)
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
	ids := bustest.Fill(b.t, br, n)
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
		if s.LastOrd != bustest.EventsEach || s.Turns != (bustest.EventsEach-1)/4 {
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
		if err != nil || v.Session != ids[i] || v.Names.Home != fmt.Sprint("/home/", bustest.EventsEach) {
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
