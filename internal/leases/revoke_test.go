package leases_test

import (
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/leases"
)

const act events.CommandID = "01JC0MMAND0000000000000001"

func (g *granting) revoke(by events.CommandID) events.LeaseRecord {
	g.t.Helper()
	former, err := g.Revoke(g.t.Context(), key, by, "moved")
	if err != nil {
		g.t.Fatalf("revoke: %v", err)
	}
	return former
}

func (g *granting) ask(inst events.Instance, grace time.Duration) (leases.Granted, error) {
	return g.Acquire(g.t.Context(), key, leases.Ask{Holder: "ex", Instance: inst, TTL: 10 * time.Second, Grace: grace})
}

func TestARevokedLeaseIsNobodysUntilItsHoldersTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a, err := g.ask("i1", 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		after(4 * time.Second)
		if former := g.revoke(act); former.Instance != "i1" || former.Fence != a.Fence {
			t.Errorf("revoked from %+v", former)
		}
		_, err = g.Renew(t.Context(), "ex", "i1", refTo(key, a.LeaseAnswer))
		wantCode(t, "a renewal", err, events.CodeLeaseLost)
		_, err = g.ask("i1", 0)
		wantCode(t, "the former instance", err, events.CodeLeaseRevoked)
		after(11 * time.Second) // 15 s since the grant: ttl and grace, without the margin
		_, err = g.ask("i2", 0)
		wantCode(t, "another before the time is over", err, events.CodeLeaseHeld)
		if n := len(g.expired()); n != 0 {
			t.Errorf("told of %d ends before the time was over", n)
		}
		after(300 * time.Millisecond)
		if n := len(g.expired()); n != 1 {
			t.Errorf("told of %d ends once the time was over", n)
		}
		b, err := g.ask("i2", 0)
		if err != nil || !a.Fence.Less(b.Fence) || b.Former.State != events.LeaseRevoked {
			t.Errorf("another after it: %+v, %v", b, err)
		}
		after(3 * time.Second)
		if n := len(g.expired()); n != 1 {
			t.Errorf("told of %d ends in all", n)
		}
	})
}

func TestARevokedLeaseThatIsGivenBackIsFreeForOthersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a := g.acquire(key, "i1", 10*time.Second)
		g.revoke(act)
		if err := g.Release(t.Context(), "ex", "i1", refTo(key, a)); err != nil {
			t.Fatal(err)
		}
		_, err := g.ask("i1", 0)
		wantCode(t, "the former instance", err, events.CodeLeaseRevoked)
		if _, err := g.ask("i2", 0); err != nil {
			t.Errorf("another: %v", err)
		}
		after(time.Minute)
		if n := len(g.expired()); n != 1 { // of i2, which is silent
			t.Errorf("told of %d ends, want the newcomer's only", n)
		}
	})
}

func TestARevocationIsDoneOnceForOneCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		_, err := g.Revoke(t.Context(), key, act, "moved")
		wantCode(t, "nobody's", err, events.CodeUnknownLease)
		g.acquire(key, "i1", 10*time.Second)
		first := g.revoke(act)
		if again := g.revoke(act); again.Instance != first.Instance || again.Fence != first.Fence {
			t.Errorf("again %+v, first %+v", again, first)
		}
		_, err = g.Revoke(t.Context(), key, act+"2", "moved")
		wantCode(t, "another command", err, events.CodeUnknownLease)
	})
}

func TestARevocationOutlivesARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		g := grant(t, m)
		g.acquire(key, "i1", 10*time.Second)
		g.revoke(act)
		g.stop()
		g = grant(t, m)
		_, err := g.ask("i1", 0)
		wantCode(t, "the former instance", err, events.CodeLeaseRevoked)
		after(10 * time.Second)
		_, err = g.ask("i2", 0)
		wantCode(t, "another", err, events.CodeLeaseHeld)
		after(2 * time.Second)
		if _, err := g.ask("i2", 0); err != nil {
			t.Errorf("another once the time is over: %v", err)
		}
		if n := len(g.expired()); n != 1 {
			t.Errorf("told of %d ends", n)
		}
	})
}

func TestAnExpiredLeaseCanBeRevokedSoThatItIsNotRenewedBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a := g.acquire(key, "i1", 2*time.Second)
		after(3 * time.Second)
		g.revoke(act)
		_, err := g.Renew(t.Context(), "ex", "i1", refTo(key, a))
		wantCode(t, "a renewal", err, events.CodeLeaseLost)
		if _, err := g.ask("i2", 0); err != nil {
			t.Errorf("another: %v", err)
		}
	})
}

// The graces are those on record, as the ttl is.
func TestTheNewcomerWaitsForTheGraceOfTheHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		g := grant(t, m)
		if _, err := g.ask("i1", 5*time.Second); err != nil {
			t.Fatal(err)
		}
		after(15 * time.Second)
		_, err := g.ask("i2", 0)
		wantCode(t, "before ttl, grace and margin", err, events.CodeLeaseHeld)
		after(300 * time.Millisecond)
		if _, err := g.ask("i2", 5*time.Second); err != nil {
			t.Errorf("after them: %v", err)
		}
		g.stop()
		g = grant(t, m)
		after(15900 * time.Millisecond)
		_, err = g.ask("i3", 0)
		wantCode(t, "after a restart, before ttl, grace and 1 s", err, events.CodeLeaseHeld)
		after(200 * time.Millisecond)
		if _, err = g.ask("i3", 0); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		_, err = g.Acquire(t.Context(), target("other"), leases.Ask{Holder: "ex", Instance: "i1", Grace: time.Hour})
		wantCode(t, "a grace of an hour", err, events.CodeInvalid)
	})
}

func TestTheAgeOfALeaseCountsFromItsLastChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := grant(t, leases.NewMemory())
		a := g.acquire(key, "i1", 10*time.Second)
		after(4 * time.Second)
		if age := g.List("main")[0].AgeMS; age != 4000 {
			t.Errorf("the age is %d ms", age)
		}
		if _, err := g.Renew(t.Context(), "ex", "i1", refTo(key, a)); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		if age := g.List("main")[0].AgeMS; age != 1000 {
			t.Errorf("after a renewal the age is %d ms", age)
		}
	})
}
