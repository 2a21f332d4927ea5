package leases_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/leases"
)

func TestAGranterThatStoodStillGivesItsHoldersTimeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a := g.acquire(key, "i1", 5*time.Second)
		b := g.acquire(target("dead"), "i1", 5*time.Second)
		after(2 * time.Second)
		g.jump(time.Minute) // suspended, and resumed
		after(5 * time.Second)
		if s := g.state(); s != events.LeaseHeld {
			t.Fatalf("after the pause the lease is %s", s)
		}
		if _, err := g.Renew(t.Context(), "ex", "i1", refTo(key, a)); err != nil {
			t.Errorf("the holder, heard at last: %v", err)
		}
		after(5 * time.Second)
		if rec, _, _ := g.Current(b.Key); rec.State != events.LeaseExpired {
			t.Errorf("the lease of the holder that is gone is %s", rec.State)
		}
		if s := g.state(); s != events.LeaseHeld {
			t.Errorf("the lease of the holder that renewed is %s", s)
		}
	})
}

func TestAnExpiryThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		g.acquire(key, "i1", 2*time.Second)
		g.bucket.Fail(errors.New("no disk"))
		after(10 * time.Second)
		if len(g.expired()) != 0 {
			t.Error("an expiry was told that is not on record")
		}
		g.bucket.Fail(nil)
		after(1100 * time.Millisecond)
		if s := g.state(); s != events.LeaseExpired || len(g.expired()) != 1 {
			t.Errorf("with the disk back the lease is %s, told %d times", s, len(g.expired()))
		}
	})
}

func TestTwoGrantersAgree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		one, two := grant(t, m), grant(t, m)
		a := one.acquire(key, "i1", 5*time.Second)
		_, err := two.Acquire(t.Context(), key, leases.Ask{Holder: "other", Instance: "i2"})
		wantCode(t, "a contender at the one that did not grant", err, events.CodeLeaseHeld)
		if again := two.acquire(key, "i1", 5*time.Second); again.Fence != a.Fence {
			t.Errorf("the holder gets fence %s at the other, had %s", again.Fence, a.Fence)
		}
		for range 5 { // the holder renews at the one only
			after(4 * time.Second)
			if _, err := one.Renew(t.Context(), "ex", "i1", refTo(key, a)); err != nil {
				t.Fatal(err)
			}
		}
		if len(one.expired())+len(two.expired()) != 0 {
			t.Errorf("a renewed lease was expired by the other granter")
		}
		if err := one.Release(t.Context(), "ex", "i1", refTo(key, a)); err != nil {
			t.Fatal(err)
		}
		if b, err := two.Acquire(t.Context(), key, leases.Ask{Holder: "other", Instance: "i2"}); err != nil || !a.Fence.Less(b.Fence) {
			t.Errorf("after the release the contender gets %+v, %v", b, err)
		}
		if _, err := one.Renew(t.Context(), "ex", "i1", refTo(key, a)); !errors.Is(err, events.ErrOf(events.CodeLeaseLost)) {
			t.Errorf("the former holder renews at the one: %v", err)
		}
	})
}

func TestTenThousandLeasesAreCheap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		g := grant(t, leases.NewMemory())
		before := runtime.NumGoroutine()
		for i := range n {
			g.acquire(target(fmt.Sprintf("t%d", i)), "i1", 5*time.Second)
		}
		if more := runtime.NumGoroutine() - before; more > n/100 {
			t.Errorf("%d leases have %d goroutines", n, more)
		}
		if got := len(g.List("main")); got != n || len(g.List("other")) != 0 {
			t.Errorf("listed are %d, and %d of another profile", got, len(g.List("other")))
		}
		after(6 * time.Second)
		if len(g.expired()) != n {
			t.Errorf("%d of %d expired", len(g.expired()), n)
		}
		after(2 * time.Hour)
		if known := leases.Known(g.Granter); known != 0 {
			t.Errorf("%d ended leases are still in memory", known)
		}
	})
}

func TestAskingForLeasesThatAreNotThereLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		for i := range 100 {
			k := target(fmt.Sprintf("t%d", i))
			_, err := g.Renew(t.Context(), "ex", "i1", events.LeaseRef{Key: k, Fence: events.Fence{Generation: 1, Sequence: 1}})
			wantCode(t, "renew of nothing", err, events.CodeLeaseLost)
			if err := g.Release(t.Context(), "ex", "i1", events.LeaseRef{Key: k}); err != nil {
				t.Error(err)
			}
		}
		if known := leases.Known(g.Granter); known != 0 {
			t.Errorf("%d keys are in memory", known)
		}
		if _, _, ok := g.Current(key); ok {
			t.Error("a lease nobody asked for is on record")
		}
	})
}
