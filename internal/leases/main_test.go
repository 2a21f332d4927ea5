package leases_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"keryx/events"
	"keryx/internal/leases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func target(name string) events.LeaseKey {
	return events.LeaseKey{Profile: "main", Kind: events.LeaseTarget, Name: name}
}

// key is the lease most tests are about.
var key = target("local")

func refTo(k events.LeaseKey, a events.LeaseAnswer) events.LeaseRef {
	return events.LeaseRef{Key: k, Fence: a.Fence}
}

// granting is a granter that runs in a synctest bubble.
type granting struct {
	*leases.Granter
	t      *testing.T
	bucket *leases.Memory
	stop   func()

	mu   sync.Mutex
	told []events.LeaseRecord // by OnExpired
	skew time.Duration        // added to the clock
}

func (g *granting) expired() []events.LeaseRecord {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.told)
}

// jump sets the clock forward, as it is after the machine slept.
func (g *granting) jump(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.skew += d
}

func (g *granting) clock(begun time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Hour + time.Since(begun) + g.skew
}

// grant starts a granter over a bucket; it stops with the test or by stop.
func grant(t *testing.T, m *leases.Memory, change ...func(*leases.Config)) *granting {
	t.Helper()
	g := &granting{t: t, bucket: m}
	begun := time.Now()
	cfg := leases.Config{
		Generation: 1, Logger: quiet,
		Clock: func() time.Duration { return g.clock(begun) },
		OnExpired: func(_ events.LeaseKey, rec events.LeaseRecord) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.told = append(g.told, rec)
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	g.Granter = leases.NewGranterOn(m, cfg)
	if err := g.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := g.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	g.stop = func() { cancel(); <-ended }
	t.Cleanup(g.stop)
	return g
}

func (g *granting) acquire(k events.LeaseKey, inst events.Instance, ttl time.Duration) events.LeaseAnswer {
	g.t.Helper()
	a, err := g.Acquire(g.t.Context(), k, leases.Ask{Holder: "ex", Instance: inst, TTL: ttl})
	if err != nil {
		g.t.Fatalf("acquire %s for %s: %v", k, inst, err)
	}
	return a.LeaseAnswer
}

func (g *granting) state() events.LeaseState {
	synctest.Wait()
	return g.bucket.Record(key).State
}

// after lets fake time pass.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // only called in synctest bubbles
	synctest.Wait()
}

func wantCode(t *testing.T, what string, err error, code events.Code) {
	t.Helper()
	if !errors.Is(err, events.ErrOf(code)) {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}
