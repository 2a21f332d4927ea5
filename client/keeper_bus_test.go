package client_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"keryx/client"
	"keryx/events"
)

// leaseBus answers lease commands as a test wants it.
type leaseBus struct {
	mu       sync.Mutex
	renewals []renewal
	latency  time.Duration // before an answer
	hang     bool          // no answer at all
	fail     error
	refuse   map[events.LeaseKey]*events.Error
	ttl      time.Duration // on record; 0: as acquired
	released []events.ReleaseLease
}

type renewal struct {
	at     time.Time
	leases []events.LeaseRef
}

func (b *leaseBus) Do(ctx context.Context, _ events.Type, data, answer any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := data.(events.RenewLease); ok {
		b.renewals = append(b.renewals, renewal{at: time.Now(), leases: r.Leases})
	}
	if r, ok := data.(events.ReleaseLease); ok {
		b.released = append(b.released, r)
	}
	if err := b.wait(ctx); err != nil {
		return err
	}
	if b.fail != nil {
		return b.fail
	}
	switch a := answer.(type) {
	case *events.LeaseAnswer:
		d := data.(events.AcquireLease)
		*a = events.LeaseAnswer{Key: d.Key, Fence: events.Fence{Generation: 1, Sequence: 7}, TTLMS: d.TTLMS}
	case *events.LeaseRenewals:
		for _, ref := range data.(events.RenewLease).Leases {
			a.Results = append(a.Results, events.LeaseRenewal{Key: ref.Key, TTLMS: b.ttl.Milliseconds(), Error: b.refuse[ref.Key]})
		}
	}
	return nil
}

// wait lets the answer take its time, without the lock.
func (b *leaseBus) wait(ctx context.Context) error {
	latency := b.latency
	if b.hang {
		latency = time.Hour
	}
	b.mu.Unlock()
	defer b.mu.Lock()
	select {
	case <-time.After(latency):
		return nil
	case <-ctx.Done():
		return events.Errorf(events.CodeTimeout, "no answer")
	}
}

func (b *leaseBus) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *leaseBus) asked() []renewal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.renewals)
}

// keeping is a keeper that runs in a synctest bubble.
type keeping struct {
	*client.Keeper
	t        *testing.T
	bus      *leaseBus
	begun    time.Time
	mu       sync.Mutex
	lost     []events.LeaseKey
	regained []events.LeaseKey
	skew     time.Duration
}

func (k *keeping) clock() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Hour + time.Since(k.begun) + k.skew
}

func keep(t *testing.T, change ...func(*keeping, *client.KeeperConfig)) *keeping {
	t.Helper()
	k := &keeping{t: t, bus: &leaseBus{refuse: make(map[events.LeaseKey]*events.Error)}, begun: time.Now()}
	cfg := client.KeeperConfig{
		Caller: k.bus, Instance: "i1", Logger: slog.New(slog.DiscardHandler), Clock: k.clock,
		OnLost: func(h *client.Held) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.lost = append(k.lost, h.Key())
		},
	}
	for _, c := range change {
		c(k, &cfg)
	}
	k.Keeper = client.NewKeeper(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return k
}

// regaining makes a keeper that renews back.
func regaining(k *keeping, c *client.KeeperConfig) {
	c.OnRegained = func(h *client.Held) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.regained = append(k.regained, h.Key())
	}
}

func (k *keeping) acquire(name string, ttl time.Duration) *client.Held {
	k.t.Helper()
	h, err := k.Acquire(k.t.Context(), leaseKey(name), client.LeaseTerms{TTL: ttl})
	if err != nil {
		k.t.Fatal(err)
	}
	return h
}

func leaseKey(name string) events.LeaseKey {
	return events.LeaseKey{Profile: "main", Kind: events.LeaseTarget, Name: name}
}

// pass lets fake time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // only called in synctest bubbles
	synctest.Wait()
}

func isLost(h *client.Held) bool {
	select {
	case <-h.Lost():
		return true
	default:
		return false
	}
}
