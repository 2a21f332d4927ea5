package authority_test

import (
	"context"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

var localLease = events.LeaseKey{Profile: profile, Kind: events.LeaseTarget, Name: "local"}

// holding registers the target "local" of an executor that keeps its lease as told.
func holding(t *testing.T, c *client.Conn, ttl time.Duration) events.Fence {
	t.Helper()
	a := do[events.LeaseAnswer](t, c, events.CmdLeaseAcquire, events.AcquireLease{Key: localLease, Instance: c.Instance(), TTLMS: ttl.Milliseconds()})
	do[events.Selection](t, c, events.CmdTargetRegister, events.RegisterTarget{
		Spec: events.TargetSpec{Name: "local", Kind: "terminal"}, Instance: c.Instance(), LeaseFence: a.Fence,
	})
	return a.Fence
}

func TestRevokeIsTheOperatorsAndGoesOnRecord(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	ex, other, op := b.connect("ex", events.RoleExecutor), b.connect("ex2", events.RoleExecutor), b.connect("op", events.RoleOperator)
	revoke := events.RevokeLease{Key: localLease, Reason: "moved"}
	refused(t, op, events.CmdLeaseRevoke, revoke, events.CodeUnknownLease)
	fence := holding(t, ex, time.Minute)
	refused(t, ex, events.CmdLeaseRevoke, revoke, events.CodeForbidden)
	refused(t, op, events.CmdLeaseRevoke, events.RevokeLease{Key: localLease}, events.CodeInvalid)
	foreign := localLease
	foreign.Profile = "other"
	refused(t, op, events.CmdLeaseRevoke, events.RevokeLease{Key: foreign, Reason: "x"}, events.CodeForbidden)
	refused(t, op, events.CmdLeaseRevoke, events.RevokeLease{Key: events.AuthorityLease, Reason: "x"}, events.CodeForbidden)

	a := do[events.RevokedLease](t, op, events.CmdLeaseRevoke, revoke)
	if a.Holder != "ex" || a.Instance != ex.Instance() || a.Fence != fence {
		t.Errorf("answered %+v", a)
	}
	refused(t, op, events.CmdTargetSelect, events.SelectTarget{Name: "local"}, events.CodeUnknownTarget)
	refused(t, ex, events.CmdLeaseAcquire, events.AcquireLease{Key: localLease, Instance: ex.Instance()}, events.CodeLeaseRevoked)
	refused(t, other, events.CmdLeaseAcquire, events.AcquireLease{Key: localLease, Instance: other.Instance()}, events.CodeLeaseHeld)
	do[events.Done](t, ex, events.CmdLeaseRelease, events.ReleaseLease{Key: localLease, Instance: ex.Instance(), Fence: fence})
	do[events.LeaseAnswer](t, other, events.CmdLeaseAcquire, events.AcquireLease{Key: localLease, Instance: other.Instance()})

	var found []events.LeaseRevocation
	for _, r := range record(t, op, events.ScopeProfile) {
		if r.Type == events.TypeLeaseRevoked {
			d, err := events.DataOf[events.LeaseRevocation](r)
			if err != nil || r.Source != events.Source(profile, "op") {
				t.Errorf("by %s: %v", r.Source, err)
			}
			found = append(found, d)
		}
	}
	want := events.LeaseRevocation{Key: localLease, Holder: "ex", Instance: ex.Instance(), Fence: fence, Reason: "moved"}
	if len(found) != 1 || found[0] != want {
		t.Errorf("on record is %+v", found)
	}
}

func TestANewcomerThatTakesAnExpiredLeaseGoesOnRecord(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	ex, other, op := b.connect("ex", events.RoleExecutor), b.connect("ex2", events.RoleExecutor), b.connect("op", events.RoleOperator)
	fence := holding(t, ex, 2*time.Second)
	ask := events.AcquireLease{Key: localLease, Instance: other.Instance()}
	var a events.LeaseAnswer
	b.await("the lease to be free", func() bool { return other.Do(t.Context(), events.CmdLeaseAcquire, ask, &a) == nil })
	var found []events.LeaseTakeover
	b.await("the record", func() bool {
		found = nil
		for _, r := range record(t, op, events.ScopeProfile) {
			if d, err := events.DataOf[events.LeaseTakeover](r); r.Type == events.TypeLeaseTakenOver && err == nil {
				found = append(found, d)
			}
		}
		return len(found) > 0
	})
	want := events.LeaseTakeover{
		Key: localLease, Holder: "ex2", Instance: other.Instance(), Fence: a.Fence,
		Former: "ex", FormerInstance: ex.Instance(), FormerFence: fence,
	}
	if len(found) != 1 || found[0] != want {
		t.Errorf("on record is %+v, want %+v", found, want)
	}
}

// The one who drives a session loses it at once: the log says that it is detached.
func TestARevokedSessionLeaseDetachesTheHost(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, host, op := b.connect("gw", events.RoleGateway), b.connect("shell", events.RoleHost), b.connect("op", events.RoleOperator)
	id := register(t, gw, "k1", events.Policy{Hosts: []events.PrincipalName{"shell"}})
	b.serve(host, func(ctx context.Context, _ *client.Turn) client.Result {
		<-ctx.Done()
		return client.Result{}
	})
	submit(t, gw, "k1", "long")
	b.await("a turn", func() bool { return count(record(t, op, id.Scope()), events.TypeTurnStarted) == 1 })
	if _, err := op.RevokeLease(t.Context(), events.LeaseKey{Profile: profile, Kind: events.LeaseSession, Name: string(id)}, "stuck"); err != nil {
		t.Fatal(err)
	}
	b.await("the end of the turn", func() bool {
		rs := record(t, op, id.Scope())
		return count(rs, events.TypeTurnEnded) == 1 && count(rs, events.TypeSessionDetached) == 1
	})
}
