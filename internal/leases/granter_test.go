package leases_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/leases"
)

func TestALeaseExpiresAfterItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a := g.acquire(key, "i1", 15*time.Second)
		after(15*time.Second + 240*time.Millisecond)
		if s := g.state(); s != events.LeaseHeld {
			t.Fatalf("before its ttl and the margin the lease is %s", s)
		}
		after(20 * time.Millisecond)
		rec := g.bucket.Record(key)
		want := events.LeaseRecord{State: events.LeaseExpired, Holder: "ex", Instance: "i1", Fence: a.Fence, TTLMS: 15_000, Reason: "not renewed"}
		if rec != want {
			t.Errorf("after it: %+v, want %+v", rec, want)
		}
		if len(g.expired()) != 1 || g.expired()[0].Instance != "i1" {
			t.Errorf("OnExpired was told %+v", g.expired())
		}
	})
}

func TestARenewedLeaseDoesNotExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a := g.acquire(key, "i1", 3*time.Second)
		for range 50 {
			after(2 * time.Second)
			if ttl, err := g.Renew(t.Context(), "ex", "i1", refTo(key, a)); err != nil || ttl != 3*time.Second {
				t.Fatalf("Renew = %v, %v", ttl, err)
			}
		}
		if _, fence, _ := g.Current(key); g.state() != events.LeaseHeld || fence != a.Fence || len(g.expired()) > 0 {
			t.Errorf("after 100 s the lease is %s under %s, was %s", g.state(), fence, a.Fence)
		}
	})
}

// TestCase_G1_TheRecordedTTLRules: a bus configured with shorter ttls, started over the
// lease of a holder with ttl 30 s that renews every 20 s, refuses a contender that asks
// each second for a minute.
func TestCase_G1_TheRecordedTTLRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		first := grant(t, m)
		a := first.acquire(key, "A", 30*time.Second)
		first.stop()
		g := grant(t, m, func(c *leases.Config) { c.DefaultTTL, c.MaxTTL = 5*time.Second, 5*time.Second })
		for s := range 60 {
			if s%20 == 19 {
				if _, err := g.Renew(t.Context(), "ex", "A", refTo(key, a)); err != nil {
					t.Fatalf("renew after %d s: %v", s, err)
				}
			}
			_, err := g.Acquire(t.Context(), key, leases.Ask{Holder: "other", Instance: "B", TTL: 5 * time.Second})
			wantCode(t, fmt.Sprintf("contender after %d s", s), err, events.CodeLeaseHeld)
			after(time.Second)
		}
	})
}

func TestARestartOfTheBusEndsNoLease(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		away  time.Duration // before the bus is back
		renew time.Duration // after it is back; 0 is never
		want  events.LeaseState
	}{
		{name: "a short restart", away: time.Second, renew: time.Second, want: events.LeaseHeld},
		{name: "a restart that lasts longer than the ttl", away: time.Hour, renew: 15 * time.Second, want: events.LeaseHeld},
		{name: "a holder that died meanwhile", away: time.Second, want: events.LeaseExpired},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := leases.NewMemory()
				before := grant(t, m)
				a := before.acquire(key, "i1", 15*time.Second)
				before.stop()
				time.Sleep(tc.away) //nolint:forbidigo // fake time
				g := grant(t, m)
				for waited := time.Duration(0); waited < 16*time.Second; waited += time.Second {
					if g.state() != events.LeaseHeld || len(g.expired()) > 0 {
						t.Fatalf("%v after the start the lease is %s", waited, g.state())
					}
					_, err := g.Acquire(t.Context(), key, leases.Ask{Holder: "other", Instance: "i2"})
					wantCode(t, "a contender in the grace", err, events.CodeLeaseHeld)
					if tc.renew == waited && tc.renew > 0 {
						if _, err := g.Renew(t.Context(), "ex", "i1", refTo(key, a)); err != nil {
							t.Fatalf("the holder renews back: %v", err)
						}
					}
					after(time.Second)
				}
				after(100 * time.Millisecond)
				if s := g.state(); s != tc.want {
					t.Errorf("17 s after the start the lease is %s, want %s", s, tc.want)
				}
				if _, fence, _ := g.Current(key); fence != a.Fence {
					t.Errorf("its fence is %s, was %s", fence, a.Fence)
				}
			})
		})
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		before func(*granting, events.LeaseAnswer)
		holder events.PrincipalName
		inst   events.Instance
		fence  func(events.Fence) events.Fence
		want   error
	}{
		{name: "the holder renews"},
		{name: "another instance does not", inst: "i2", want: events.ErrOf(events.CodeLeaseLost)},
		{name: "another principal with the same instance does not", holder: "other", want: events.ErrOf(events.CodeLeaseLost)},
		{name: "another fence does not", fence: func(f events.Fence) events.Fence { f.Sequence++; return f }, want: events.ErrOf(events.CodeLeaseLost)},
		{name: "no fence does not", fence: func(events.Fence) events.Fence { return events.Fence{} }, want: events.ErrOf(events.CodeLeaseLost)},
		{name: "an expired lease that nobody took is renewed back", before: func(*granting, events.LeaseAnswer) { after(time.Minute) }},
		{name: "an expired lease that another took is lost", want: events.ErrOf(events.CodeLeaseLost), before: func(g *granting, _ events.LeaseAnswer) {
			after(time.Minute)
			g.acquire(key, "i2", 0)
		}},
		{name: "an expired lease that another took and gave back is lost", want: events.ErrOf(events.CodeLeaseLost), before: func(g *granting, _ events.LeaseAnswer) {
			after(time.Minute)
			b := g.acquire(key, "i2", 0)
			if err := g.Release(g.t.Context(), "ex", "i2", refTo(key, b)); err != nil {
				g.t.Error(err)
			}
		}},
		{name: "a released lease is lost", want: events.ErrOf(events.CodeLeaseLost), before: func(g *granting, a events.LeaseAnswer) {
			if err := g.Release(g.t.Context(), "ex", "i1", refTo(key, a)); err != nil {
				g.t.Error(err)
			}
		}},
		{name: "a lease that the bus ended is lost", want: events.ErrOf(events.CodeLeaseLost), before: func(g *granting, _ events.LeaseAnswer) {
			if err := g.Drop(g.t.Context(), key, "i1", "finalized"); err != nil {
				g.t.Error(err)
			}
		}},
		{name: "a lease that vanished is lost", want: events.ErrOf(events.CodeLeaseLost), before: func(g *granting, _ events.LeaseAnswer) {
			after(2 * time.Hour)
			g.bucket.Vanish(key)
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := grant(t, leases.NewMemory())
				a := g.acquire(key, "i1", 5*time.Second)
				if tc.before != nil {
					tc.before(g, a)
				}
				holder, inst, ref := events.PrincipalName("ex"), events.Instance("i1"), refTo(key, a)
				if tc.holder != "" {
					holder = tc.holder
				}
				if tc.inst != "" {
					inst = tc.inst
				}
				if tc.fence != nil {
					ref.Fence = tc.fence(ref.Fence)
				}
				ttl, err := g.Renew(t.Context(), holder, inst, ref)
				if !errors.Is(err, tc.want) {
					t.Fatalf("Renew = %v, want %v", err, tc.want)
				}
				if rec, fence, _ := g.Current(key); err == nil && (ttl != 5*time.Second || rec.State != events.LeaseHeld || fence != a.Fence || rec.Reason != "") {
					t.Errorf("renewed for %v: %+v under %s", ttl, rec, fence)
				}
			})
		})
	}
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a := g.acquire(key, "i1", 0)
		if a.TTLMS != 15_000 || a.Key != key || a.Fence.IsZero() {
			t.Errorf("granted %+v, want the default ttl and a fence", a)
		}
		if again := g.acquire(key, "i1", 20*time.Second); again.Fence != a.Fence || again.TTLMS != 20_000 {
			t.Errorf("the holder asks again and gets %+v, want fence %s and its new ttl", again, a.Fence)
		}
		_, err := g.Acquire(t.Context(), key, leases.Ask{Holder: "other", Instance: "i2"})
		wantCode(t, "a contender", err, events.CodeLeaseHeld)
		var held *events.Error
		if errors.As(err, &held) && (held.Details["holder"] != "ex" || held.Details["instance"] != "i1") {
			t.Errorf("the refusal names %v", held.Details)
		}
		_, err = g.Acquire(t.Context(), key, leases.Ask{Holder: "ex", Instance: "i2"})
		wantCode(t, "another start of the holder", err, events.CodeLeaseHeld)
		for ttl, ok := range map[time.Duration]bool{1999 * time.Millisecond: false, 2 * time.Second: true, time.Hour: true, time.Hour + 1: false, -time.Second: false} {
			if _, err := g.Acquire(t.Context(), target(fmt.Sprintf("t%d", ttl)), leases.Ask{Holder: "ex", Instance: "i1", TTL: ttl}); (err == nil) != ok {
				t.Errorf("a ttl of %v: %v", ttl, err)
			} else if err != nil {
				wantCode(t, "a bad ttl", err, events.CodeInvalid)
			}
		}
	})
}

func TestALateReleaseDoesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		old := g.acquire(key, "i1", 2*time.Second)
		after(3 * time.Second)
		now := g.acquire(key, "i2", 0)
		late := []struct {
			inst events.Instance
			ref  events.LeaseRef
		}{{"i1", refTo(key, old)}, {"i2", refTo(key, old)}, {"i1", refTo(key, now)}}
		for _, l := range late {
			if err := g.Release(t.Context(), "ex", l.inst, l.ref); err != nil {
				t.Errorf("release by %s under %s: %v", l.inst, l.ref.Fence, err)
			}
		}
		if err := g.Drop(t.Context(), key, "i1", "late"); err != nil {
			t.Error(err)
		}
		if rec, fence, _ := g.Current(key); rec.State != events.LeaseHeld || rec.Instance != "i2" || fence != now.Fence {
			t.Errorf("the lease is %+v under %s, want i2's under %s", rec, fence, now.Fence)
		}
	})
}

func TestFencesRise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		g := grant(t, m)
		last := events.Fence{}
		rises := func(how string, inst events.Instance) events.LeaseAnswer {
			t.Helper()
			a := g.acquire(key, inst, 2*time.Second)
			if !last.Less(a.Fence) {
				t.Errorf("%s: fence %s after %s", how, a.Fence, last)
			}
			last = a.Fence
			return a
		}
		a := rises("the first", "i1")
		if err := g.Release(t.Context(), "ex", "i1", refTo(key, a)); err != nil {
			t.Fatal(err)
		}
		rises("over a release", "i1")
		after(3 * time.Second)
		rises("over an expiry", "i1")
		after(2 * time.Hour)
		m.Vanish(key)
		rises("over the end of its record", "i2")
		g.stop()
		g = grant(t, m)
		after(4 * time.Second)
		rises("over a restart", "i3")
		g.stop()
		g = grant(t, m, func(c *leases.Config) { c.Generation = 2 })
		after(4 * time.Second)
		rises("over an accepted loss", "i4")
	})
}

func TestExpect(t *testing.T) {
	t.Parallel()
	other := events.LeaseRecord{State: events.LeaseHeld, Holder: "ex", Instance: "i1"}
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		expect := func(inst events.Instance) events.Fence {
			t.Helper()
			if err := g.Expect(t.Context(), key, "ex", inst, 5*time.Second); err != nil {
				t.Fatal(err)
			}
			rec, fence, _ := g.Current(key)
			if other.Instance = inst; rec.State != other.State || rec.Instance != inst || rec.TTLMS != 5000 {
				t.Fatalf("on record is %+v, want %s's", rec, inst)
			}
			return fence
		}
		first := expect("i1") // no record at all
		after(4 * time.Second)
		if again := expect("i1"); again != first { // held already: its time begins anew
			t.Errorf("the fence went from %s to %s", first, again)
		}
		after(5900 * time.Millisecond)
		if s := g.state(); s != events.LeaseHeld {
			t.Errorf("5.9 s after the activation the lease is %s", s)
		}
		after(200 * time.Millisecond)
		if s := g.state(); s != events.LeaseExpired {
			t.Errorf("6.1 s after the activation the lease is %s", s)
		}
		if anew := expect("i1"); !first.Less(anew) { // expired, and the log still has it
			t.Errorf("the fence went from %s to %s", first, anew)
		}
		expect("i2") // the log has another
	})
}
