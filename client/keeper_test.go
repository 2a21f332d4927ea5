package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"keryx/client"
	"keryx/events"
)

func TestALeaseIsRenewedAtAThirdOfItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		h := k.acquire("t", 15*time.Second)
		pass(10 * time.Minute)
		if !h.Valid() || isLost(h) || h.Final() {
			t.Fatalf("after ten minutes the lease is lost: %v, valid: %v", isLost(h), h.Valid())
		}
		last := k.begun
		spread := make(map[time.Duration]bool)
		for _, r := range k.bus.asked() {
			after := r.at.Sub(last)
			most := 7500 * time.Millisecond
			if last.Equal(k.begun) {
				most = 10 * time.Second // the first is spread over a third
			}
			if after < 4*time.Second || after > most {
				t.Errorf("renewed %v after the renewal before", after)
			}
			spread[after.Round(100*time.Millisecond)], last = true, r.at
		}
		if len(spread) < 5 {
			t.Errorf("the renewals have no jitter: %v", spread)
		}
		if want := (events.LeaseRef{Key: h.Key(), Fence: h.Fence()}); k.bus.asked()[0].leases[0] != want {
			t.Errorf("renewed %+v, want %+v", k.bus.asked()[0].leases[0], want)
		}
	})
}

func TestALeaseIsLostAtItsDeadline(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		bus   func(*leaseBus)
		until time.Duration // since the request
	}{
		{name: "no answer comes to the renewal", bus: func(b *leaseBus) { b.hang = true }, until: 9 * time.Second},
		{name: "the renewal fails", bus: func(b *leaseBus) { b.fail = errors.New("no bus") }, until: 9 * time.Second},
		{name: "the bus cannot say", until: 9 * time.Second, bus: func(b *leaseBus) {
			b.refuse[leaseKey("t")] = events.Errorf(events.CodeUnavailable, "not yet")
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := keep(t)
				k.bus.set(func() { k.bus.latency = 2 * time.Second })
				h := k.acquire("t", 10*time.Second) // the answer took 2 s: they do not count
				k.bus.set(func() { tc.bus(k.bus) })
				pass(tc.until - 2*time.Second - time.Millisecond)
				if !h.Valid() || isLost(h) {
					t.Fatalf("before the deadline: lost %v, valid %v", isLost(h), h.Valid())
				}
				pass(time.Millisecond)
				if h.Valid() || !isLost(h) || !h.Final() || len(k.lost) != 1 {
					t.Errorf("at the deadline: lost %v, valid %v, told %v", isLost(h), h.Valid(), k.lost)
				}
				k.bus.set(func() {
					k.bus.renewals, k.bus.hang, k.bus.fail, k.bus.refuse = nil, false, nil, nil
				})
				pass(time.Minute)
				if n := len(k.bus.asked()); n != 0 || h.Valid() {
					t.Errorf("a lost lease was asked for %d times more; valid: %v", n, h.Valid())
				}
			})
		})
	}
}

func TestARefusedLeaseIsLostAtOnce(t *testing.T) {
	t.Parallel()
	for _, code := range []events.Code{events.CodeLeaseLost, events.CodeUnknownSession, events.CodeForbidden, events.CodeStaleFence} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := keep(t)
				h, other := k.acquire("t", 15*time.Second), k.acquire("other", 15*time.Second)
				k.bus.set(func() { k.bus.refuse[h.Key()] = events.Errorf(code, "no") })
				pass(11 * time.Second)
				if !isLost(h) || h.Valid() || !h.Final() {
					t.Errorf("refused: lost %v, valid %v, final %v", isLost(h), h.Valid(), h.Final())
				}
				if !other.Valid() || isLost(other) {
					t.Error("the other lease is lost too")
				}
				if !slices.Equal(k.lost, []events.LeaseKey{h.Key()}) {
					t.Errorf("told of %v", k.lost)
				}
			})
		})
	}
}

func TestAFailedRenewalIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		h := k.acquire("t", 15*time.Second)
		k.bus.set(func() { k.bus.fail = errors.New("no bus") })
		pass(12 * time.Second)
		tries := len(k.bus.asked())
		if tries < 4 || tries > 40 {
			t.Errorf("%d tries in 7 s or less", tries)
		}
		k.bus.set(func() { k.bus.fail = nil })
		pass(3 * time.Second)
		if !h.Valid() || len(k.lost) != 0 {
			t.Errorf("with the bus back: valid %v, lost %v", h.Valid(), k.lost)
		}
	})
}

func TestAHangingRenewalHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		slow := k.acquire("slow", 60*time.Second)
		k.bus.set(func() { k.bus.hang = true })
		pass(41 * time.Second) // its renewal hangs
		if len(k.bus.asked()) == 0 {
			t.Fatal("the slow lease was not renewed")
		}
		k.bus.set(func() { k.bus.hang = false })
		quick := k.acquire("quick", 2*time.Second)
		for range 20 {
			pass(500 * time.Millisecond)
			if !quick.Valid() || !slow.Valid() {
				t.Fatalf("valid: quick %v, slow %v", quick.Valid(), slow.Valid())
			}
		}
		pass(time.Minute)
		if !slow.Valid() || len(k.lost) != 0 {
			t.Errorf("valid: %v, lost %v", slow.Valid(), k.lost)
		}
	})
}

func TestTheRecordedTTLCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		h := k.acquire("t", 60*time.Second)
		k.bus.set(func() { k.bus.ttl = 3 * time.Second })
		pass(45 * time.Second) // renewed, at the latest after 40 s: the bus has 3 s on record
		k.bus.set(func() { k.bus.hang = true })
		pass(3 * time.Second)
		if h.Valid() || !isLost(h) {
			t.Error("the lease is trusted beyond the ttl on record")
		}
	})
}

func TestWhatIsGivenUpIsNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		released, forgotten, late := k.acquire("r", 15*time.Second), k.acquire("f", 15*time.Second), k.acquire("l", 6*time.Second)
		if err := released.Release(t.Context()); err != nil {
			t.Error(err)
		}
		forgotten.Forget()
		k.bus.set(func() { k.bus.latency = time.Second })
		for len(k.bus.asked()) == 0 { // until late's renewal is under way
			pass(50 * time.Millisecond)
		}
		late.Forget()
		pass(time.Minute)
		for _, h := range []*client.Held{released, forgotten, late} {
			if h.Valid() || isLost(h) || !h.Final() {
				t.Errorf("%s: valid %v, lost %v, final %v", h.Key(), h.Valid(), isLost(h), h.Final())
			}
		}
		if n := len(k.bus.asked()); n != 1 {
			t.Errorf("%d renewals, want the one that was under way", n)
		}
		if want := (events.ReleaseLease{Key: released.Key(), Instance: "i1", Fence: released.Fence()}); len(k.bus.released) != 1 || k.bus.released[0] != want {
			t.Errorf("released %+v, want %+v", k.bus.released, want)
		}
	})
}

func TestAReplacedLeaseIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		old := k.acquire("t", 15*time.Second)
		now := k.acquire("t", 15*time.Second)
		if !isLost(old) || old.Valid() || !now.Valid() {
			t.Errorf("old: lost %v, valid %v; new: valid %v", isLost(old), old.Valid(), now.Valid())
		}
		old.Forget() // late: concerns the old one only
		pass(time.Minute)
		if !now.Valid() {
			t.Error("the new one is lost")
		}
	})
}

func TestALeaseIsRenewedBackWhenTheBusWasAwayForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, regaining)
		h, gone := k.acquire("t", 15*time.Second), k.acquire("gone", 15*time.Second)
		k.bus.set(func() { k.bus.fail = errors.New("no bus") })
		pass(5 * time.Minute)
		if !isLost(h) || h.Valid() || h.Final() {
			t.Fatalf("without a bus: lost %v, valid %v, final %v", isLost(h), h.Valid(), h.Final())
		}
		k.bus.set(func() {
			k.bus.fail = nil
			k.bus.refuse[gone.Key()] = events.Errorf(events.CodeLeaseLost, "taken")
		})
		pass(3 * time.Second)
		if !h.Valid() || isLost(h) || !slices.Equal(k.regained, []events.LeaseKey{h.Key()}) {
			t.Errorf("with the bus back: valid %v, lost %v, regained %v", h.Valid(), isLost(h), k.regained)
		}
		if gone.Valid() || !isLost(gone) || !gone.Final() {
			t.Errorf("what another took: valid %v, lost %v, final %v", gone.Valid(), isLost(gone), gone.Final())
		}
		if len(k.lost) != 3 || k.lost[2] != gone.Key() {
			t.Errorf("OnLost was told of %v, want both, and again of the one refused", k.lost)
		}
		pass(time.Hour)
		if !h.Valid() {
			t.Error("what was regained is not renewed")
		}
	})
}

func TestAMachineThatSleptTrustsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		h := k.acquire("t", 60*time.Second)
		pass(5 * time.Second)
		k.mu.Lock()
		k.skew = time.Minute
		k.mu.Unlock()
		if h.Valid() {
			t.Error("right after the sleep the lease is trusted")
		}
		pass(time.Second)
		if !isLost(h) {
			t.Error("a second after the sleep nobody was told")
		}
	})
}

func TestAcquireHandsOnTheRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		k.bus.set(func() { k.bus.fail = events.Errorf(events.CodeLeaseHeld, "held by another") })
		if _, err := k.Acquire(t.Context(), leaseKey("t"), client.LeaseTerms{}); !errors.Is(err, events.ErrOf(events.CodeLeaseHeld)) {
			t.Errorf("Acquire: %v", err)
		}
	})
}

// TestCase_G7_RenewalsAreSpread: 1,000 leases with ttl 60 s, acquired within 100 ms, and
// a bus that is away from second 30 to second 33: the renewals are spread, none comes
// late, no burst follows the restart, and no lease is lost.
func TestCase_G7_RenewalsAreSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		const n = 1000
		for i := range n {
			k.acquire(fmt.Sprintf("t%d", i), 60*time.Second)
			if i%10 == 9 {
				pass(time.Millisecond)
			}
		}
		pass(30*time.Second - time.Since(k.begun))
		k.bus.set(func() { k.bus.fail = errors.New("no bus") })
		pass(3 * time.Second)
		k.bus.set(func() { k.bus.fail = nil })
		pass(10 * time.Minute)
		if len(k.lost) != 0 {
			t.Errorf("%d leases were lost", len(k.lost))
		}
		perSecond := make(map[int]int)
		first := make(map[events.LeaseKey]time.Duration)
		for _, r := range k.bus.asked() {
			at := r.at.Sub(k.begun)
			perSecond[int(at.Seconds())] += len(r.leases)
			for _, l := range r.leases {
				if _, ok := first[l.Key]; !ok {
					first[l.Key] = at
				}
			}
		}
		for s, n := range perSecond {
			if n > 100 && s >= 33 || n > 130 { // before that they are tries, without a bus
				t.Errorf("%d renewals in second %d", n, s)
			}
		}
		for key, at := range first {
			if at < 19*time.Second || at > 50*time.Second {
				t.Errorf("%s was first renewed after %v", key, at)
			}
		}
		if len(k.bus.asked()) > 20*60*11 {
			t.Errorf("%d commands for %d leases", len(k.bus.asked()), n)
		}
	})
}
