package leases_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/leases"
)

// granterBus answers a holder's commands by a granter. While the bus is away commands
// wait, as those of a connection do, and are answered all at once when it is back.
type granterBus struct {
	mu       sync.Mutex
	granter  *leases.Granter // nil: away
	back     chan struct{}   // closed when it is back
	renewals []renewed
}

type renewed struct {
	key events.LeaseKey
	at  time.Time
}

func (b *granterBus) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granter, b.back = nil, make(chan struct{})
}

func (b *granterBus) serve(g *leases.Granter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granter = g
	if b.back != nil {
		close(b.back)
	}
}

func (b *granterBus) Do(ctx context.Context, _ events.Type, data, answer any) error {
	b.mu.Lock()
	g, back := b.granter, b.back
	b.mu.Unlock()
	if g == nil {
		select {
		case <-back:
			return b.Do(ctx, "", data, answer)
		case <-ctx.Done():
			return events.Errorf(events.CodeTimeout, "no answer")
		}
	}
	switch d := data.(type) {
	case events.AcquireLease:
		a, err := g.Acquire(ctx, d.Key, leases.Ask{Holder: "ex", Instance: d.Instance, TTL: time.Duration(d.TTLMS) * time.Millisecond})
		*answer.(*events.LeaseAnswer) = a.LeaseAnswer
		return err
	case events.RenewLease:
		b.renew(ctx, g, d, answer.(*events.LeaseRenewals))
	}
	return nil
}

func (b *granterBus) renew(ctx context.Context, g *leases.Granter, d events.RenewLease, answer *events.LeaseRenewals) {
	for _, ref := range d.Leases {
		ttl, err := g.Renew(ctx, "ex", d.Instance, ref)
		r := events.LeaseRenewal{Key: ref.Key, TTLMS: ttl.Milliseconds()}
		if err != nil {
			r.Error = events.Errorf(events.CodeLeaseLost, "%v", err)
		}
		answer.Results = append(answer.Results, r)
		b.mu.Lock()
		b.renewals = append(b.renewals, renewed{ref.Key, time.Now()})
		b.mu.Unlock()
	}
}

// perSecond counts the renewals of each second since a time, and returns when each lease
// was renewed first.
func (b *granterBus) perSecond(since time.Time) (map[int]int, map[events.LeaseKey]time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seconds, first := make(map[int]int), make(map[events.LeaseKey]time.Duration)
	for _, r := range b.renewals {
		at := r.at.Sub(since)
		seconds[int(at/time.Second)]++
		if _, ok := first[r.key]; !ok {
			first[r.key] = at
		}
	}
	return seconds, first
}

// TestCase_G7_AThousandLeasesDoNotStormARestartedBus: 1,000 leases of 60 s, acquired within
// 100 ms; the bus is away from second 30 to second 33. Both sides are the real ones, time
// is not.
func TestCase_G7_AThousandLeasesDoNotStormARestartedBus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, b, begun := leases.NewMemory(), &granterBus{}, time.Now()
		g := grant(t, m)
		b.serve(g.Granter)
		keep := client.NewKeeper(client.KeeperConfig{
			Caller: b, Instance: "i1", Logger: quiet, Clock: func() time.Duration { return time.Hour + time.Since(begun) },
			OnLost: func(h *client.Held) { t.Errorf("%s was lost after %v", h.Key(), time.Since(begun)) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); keep.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		const n = 1000
		for i := range n {
			if _, err := keep.Acquire(ctx, target(fmt.Sprintf("t%d", i)), client.LeaseTerms{TTL: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if i%10 == 9 {
				after(time.Millisecond)
			}
		}
		after(30*time.Second - time.Since(begun))
		b.leave()
		g.stop()
		after(3 * time.Second)
		g = grant(t, m)
		b.serve(g.Granter)
		after(10 * time.Minute)
		checkSpread(t, b, begun, n)
		if told := g.expired(); len(told) != 0 {
			t.Errorf("%d leases expired", len(told))
		}
	})
}

func checkSpread(t *testing.T, b *granterBus, begun time.Time, n int) {
	t.Helper()
	seconds, first := b.perSecond(begun)
	for s, count := range seconds {
		if s >= 30 && count > 100 {
			t.Errorf("%d renewals in second %d", count, s)
		}
	}
	var early, late, last int
	for _, at := range first {
		early += boolInt(at < 30*time.Second)
		late += boolInt(at >= 30*time.Second && at <= 42*time.Second)
		last = max(last, int(at/time.Second))
	}
	if len(first) != n || last >= 50 || early < n/3 || late < n/3 {
		t.Errorf("%d of %d leases were renewed, %d before second 30, %d by second 42, the last in second %d", len(first), n, early, late, last)
	}
	t.Logf("%d before second 30, %d by second 42, the last in second %d; the seconds after the restart: %d %d %d %d",
		early, late, last, seconds[33], seconds[34], seconds[35], seconds[36])
}

func boolInt(v bool) int {
	if v {
		return 1
	}
	return 0
}
