package leases_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
	"keryx/internal/bustest"
	"keryx/internal/leases"
)

// onBus starts a granter on a bus; it stops with the test or by the function returned.
func onBus(t *testing.T, nc *nats.Conn, change ...func(*leases.Config)) (*leases.Granter, func()) {
	t.Helper()
	s, err := leases.OpenStore(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	cfg := leases.Config{Generation: 1, Logger: quiet, MinTTL: 100 * time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	g, err := leases.NewGranter(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return g, stop
}

func mustAcquire(t *testing.T, g *leases.Granter, k events.LeaseKey, inst events.Instance, ttl time.Duration) events.LeaseAnswer {
	t.Helper()
	a, err := g.Acquire(t.Context(), k, leases.Ask{Holder: "ex", Instance: inst, TTL: ttl})
	if err != nil {
		t.Fatalf("acquire %s for %s: %v", k, inst, err)
	}
	return a.LeaseAnswer
}

// raw returns the bucket's stream, to see what is really there.
func raw(t *testing.T, nc *nats.Conn) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_"+events.BucketLeases)
	if err != nil {
		t.Fatal(err)
	}
	return js, s
}

const within = 10 * time.Second // for what has to happen soon

// TestCase_G6_AWatcherSeesAnExpiryAsARecord: the granting side of case G6. A watcher of
// the lease sees, within a second of the expiry, a record that says so, with holder and
// fence; never an empty body.
func TestCase_G6_AWatcherSeesAnExpiryAsARecord(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.System(t, b)
	seen := make(chan *nats.Msg, 16)
	if _, err := nc.ChanSubscribe(events.LeaseSubject(key), seen); err != nil {
		t.Fatal(err)
	}
	expired := make(chan time.Time, 1)
	g, _ := onBus(t, nc, func(c *leases.Config) {
		c.OnExpired = func(events.LeaseKey, events.LeaseRecord) { expired <- time.Now() }
	})
	const ttl = 2 * time.Second
	begun := time.Now()
	a := mustAcquire(t, g, key, "i1", ttl)
	var states []string
	for len(states) < 2 {
		select {
		case m := <-seen:
			if len(m.Data) == 0 {
				t.Fatalf("an empty body: %v", m.Header)
			}
			states = append(states, string(m.Data))
		case <-time.After(within):
			t.Fatalf("the watcher saw only %q", states)
		}
	}
	took := time.Since(begun)
	if took < ttl || took > ttl+time.Second {
		t.Errorf("the watcher saw the expiry after %v", took)
	}
	<-expired
	want := []string{
		`{"state":"held","holder":"ex","instance":"i1","ttl_ms":2000}`,
		fmt.Sprintf(`{"state":"expired","holder":"ex","instance":"i1","fence":"%s","ttl_ms":2000,"reason":"not renewed"}`, a.Fence),
	}
	if !slices.Equal(states, want) {
		t.Errorf("the watcher saw\n%q, want\n%q", states, want)
	}
}

// TestCase_G6_AnEmptyOrDamagedValueIsNoLease: an expiry marker, a deleted key and a body
// that is no record are free.
func TestCase_G6_AnEmptyOrDamagedValueIsNoLease(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.System(t, b)
	js, _ := raw(t, nc)
	last := events.Fence{}
	for name, m := range map[string]*nats.Msg{
		"empty":   {},
		"marker":  {Header: nats.Header{jetstream.MarkerReasonHeader: {"MaxAge"}}},
		"deleted": {Header: nats.Header{"KV-Operation": {"DEL"}}},
		"damaged": {Data: []byte(`{"state":"he`)},
		"no":      {Data: []byte(`{}`)},
	} {
		k := target(name)
		m.Subject = "$KV." + events.BucketLeases + "." + k.String()
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		g, stop := onBus(t, nc)
		if rec, _, ok := g.Current(k); ok {
			t.Errorf("%s: taken for the lease %+v", name, rec)
		}
		if _, err := g.Renew(t.Context(), "", "", events.LeaseRef{Key: k}); err == nil {
			t.Errorf("%s: renewed", name)
		}
		a := mustAcquire(t, g, k, "i1", 0)
		if !last.Less(a.Fence) {
			t.Errorf("%s: fence %s after %s", name, a.Fence, last)
		}
		last = a.Fence
		stop()
	}
}

// TestCase_G6_ARestartOverExpiredKeys: five leases whose time ran out while the bus was
// away are held for their whole ttl after the start, and then expire.
func TestCase_G6_ARestartOverExpiredKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const ttl = 500 * time.Millisecond
	b := bustest.Broker(t, bustest.Dir(dir))
	g, stop := onBus(t, bustest.System(t, b))
	var held []events.LeaseAnswer
	for i := range 5 {
		held = append(held, mustAcquire(t, g, target(fmt.Sprintf("t%d", i)), "i1", ttl))
	}
	stop()
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * ttl)

	var mu sync.Mutex
	var expired []events.LeaseKey
	all := make(chan struct{})
	b = bustest.Broker(t, bustest.Dir(dir))
	g, _ = onBus(t, bustest.System(t, b), func(c *leases.Config) {
		c.OnExpired = func(k events.LeaseKey, _ events.LeaseRecord) {
			mu.Lock()
			defer mu.Unlock()
			if expired = append(expired, k); len(expired) == 4 {
				close(all)
			}
		}
	})
	begun := time.Now()
	for _, a := range held {
		_, err := g.Acquire(t.Context(), a.Key, leases.Ask{Holder: "other", Instance: "i2", TTL: ttl})
		wantCode(t, "a contender in the grace", err, events.CodeLeaseHeld)
	}
	stay := refTo(held[0].Key, held[0])
	if _, err := g.Renew(t.Context(), "ex", "i1", stay); err != nil {
		t.Fatalf("the holder renews back: %v", err)
	}
	keep := time.NewTicker(ttl / 5)
	defer keep.Stop()
	for done := false; !done; {
		select {
		case <-keep.C:
			if _, err := g.Renew(t.Context(), "ex", "i1", stay); err != nil {
				t.Fatalf("renew: %v", err)
			}
		case <-all:
			done = true
		case <-time.After(within):
			t.Fatal("the leases of the dead did not expire")
		}
	}
	if took := time.Since(begun); took < ttl {
		t.Errorf("they expired %v after the start", took)
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(expired, stay.Key) {
		t.Error("the renewed one expired too")
	}
}

func TestOnlyEndedRecordsHaveATTLOfTheServers(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.System(t, b)
	_, s := raw(t, nc)
	g, _ := onBus(t, nc)
	ttl := func() string {
		t.Helper()
		m, err := s.GetLastMsgForSubject(t.Context(), "$KV."+events.BucketLeases+"."+key.String())
		if err != nil {
			t.Fatal(err)
		}
		return m.Header.Get(jetstream.MsgTTLHeader)
	}
	a := mustAcquire(t, g, key, "i1", 0)
	if got := ttl(); got != "" {
		t.Errorf("a held record has the ttl %s", got)
	}
	if _, err := g.Renew(t.Context(), "ex", "i1", refTo(key, a)); err != nil || ttl() != "" {
		t.Errorf("a renewed record has the ttl %s (%v)", ttl(), err)
	}
	if err := g.Release(t.Context(), "ex", "i1", refTo(key, a)); err != nil || ttl() != "1h0m0s" {
		t.Errorf("a released record has the ttl %s (%v)", ttl(), err)
	}
	if b := mustAcquire(t, g, key, "i2", 0); !a.Fence.Less(b.Fence) || ttl() != "" {
		t.Errorf("acquired over a release: fence %s after %s, ttl %s", b.Fence, a.Fence, ttl())
	}
}

// TestTwoGrantersRace: two granters over one bucket, many holders each asking one of
// them: each lease has one holder, and each that was refused was told by a lease_held.
func TestTwoGrantersRace(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	granters := make([]*leases.Granter, 2)
	for i := range granters {
		granters[i], _ = onBus(t, bustest.System(t, b))
	}
	const keys, holders = 10, 8
	var mu sync.Mutex
	won := make(map[events.LeaseKey][]events.LeaseAnswer)
	var wg sync.WaitGroup
	for h := range holders {
		wg.Go(func() {
			for k := range keys {
				name := target(fmt.Sprintf("t%d", k))
				a, err := granters[h%2].Acquire(t.Context(), name, leases.Ask{Holder: "ex", Instance: events.Instance(fmt.Sprintf("i%d", h))})
				if err != nil {
					wantCode(t, "a loser", err, events.CodeLeaseHeld)
					continue
				}
				mu.Lock()
				won[name] = append(won[name], a.LeaseAnswer)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for k, as := range won {
		one, f1, _ := granters[0].Current(k)
		two, f2, _ := granters[1].Current(k)
		if len(as) != 1 || one != two || f1 != f2 || f1 != as[0].Fence {
			t.Errorf("%s was won %d times; the granters say %+v %s and %+v %s", k, len(as), one, f1, two, f2)
		}
	}
	if len(won) != keys {
		t.Errorf("%d of %d leases were won", len(won), keys)
	}
}

// TestHandOverOnABus: the leader's connection is cut without a word; the other candidate
// leads within the ttl and a second, and not before the first has stopped.
func TestHandOverOnABus(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	const ttl = 2 * time.Second
	type change struct {
		who   string
		leads bool
		at    time.Time
	}
	changes := make(chan change, 8)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	candidate := func(name string) *nats.Conn {
		nc := bustest.System(t, b)
		s, err := leases.OpenStore(ctx, nc)
		if err != nil {
			t.Fatal(err)
		}
		e, err := leases.NewElector(s, leases.ElectorConfig{
			Key: events.AuthorityLease, Holder: "authority", Instance: events.Instance(name), TTL: ttl, Logger: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			err := e.Run(ctx, func(ctx context.Context) error {
				changes <- change{name, true, time.Now()}
				<-ctx.Done()
				changes <- change{name, false, time.Now()}
				return nil
			})
			if err != nil {
				t.Errorf("Run of %s: %v", name, err)
			}
		})
		return nc
	}
	next := func() change {
		t.Helper()
		select {
		case c := <-changes:
			return c
		case <-time.After(within):
			t.Fatal("nothing changed")
			return change{}
		}
	}
	first := candidate("a")
	if c := next(); c.who != "a" || !c.leads {
		t.Fatalf("first %+v", c)
	}
	renewed := make(chan *nats.Msg, 8)
	if _, err := candidate("b").ChanSubscribe(events.LeaseSubject(events.AuthorityLease), renewed); err != nil {
		t.Fatal(err)
	}
	select {
	case <-renewed:
	case <-time.After(within):
		t.Fatal("the leader does not renew")
	}
	first.Close()
	cut := time.Now()
	stopped, began := next(), next()
	if stopped.who != "a" || stopped.leads || began.who != "b" || !began.leads {
		t.Fatalf("after the cut: %+v, then %+v", stopped, began)
	}
	if took := began.at.Sub(cut); took > ttl+time.Second {
		t.Errorf("b leads %v after the cut", took)
	}
	cancel()
	wg.Wait()
	t.Logf("a stopped %v after the cut, b led %v after it", stopped.at.Sub(cut).Round(time.Millisecond), began.at.Sub(cut).Round(time.Millisecond))
}
