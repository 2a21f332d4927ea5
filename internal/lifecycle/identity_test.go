package lifecycle_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/lifecycle"
)

func TestRegisterGivesAnIdentityOnceAndAgreesAfterwards(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	names := events.Names{GatewaySessionKey: "k1", StoredSessionID: "s1", TaskID: "never a name"}
	first := do[events.Registered](l, gw1, events.Register{Names: names})
	if want := (events.Registered{Session: session, Epoch: 1, Created: true}); first != want {
		t.Errorf("first answer %+v", first)
	}
	again := do[events.Registered](l, gw1, events.Register{Names: names})
	if want := (events.Registered{Session: session, Epoch: 1}); again != want {
		t.Errorf("second answer %+v", again)
	}
	names.SessionID = "a1"
	do[events.Registered](l, gw1, events.Register{Names: names})
	l.wantTypes(0, "session.registered/1", "session.aliased/1")
	if got := l.data[1].(events.SessionAliased).Names; got != (events.Names{SessionID: "a1"}) {
		t.Errorf("aliased %+v", got)
	}
	if got := l.state.CurrentNames(); got.StoredSessionID != "s1" || got.SessionID != "a1" || got.TaskID != "" {
		t.Errorf("names %+v", got)
	}
}

func TestRegisterByAHostWantsThatHost(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	do[events.Registered](l, rude, events.Register{Names: events.Names{StoredSessionID: "s1"}})
	do[events.Attached](l, rude, events.Attach{Session: session, Instance: "i9"})
	l.refused(host, events.Attach{Session: session, Instance: "i1"}, events.CodeForbidden)
}

func TestNamesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	foreign := func(l *ledger, owner events.PrincipalName, s events.SessionID) {
		n := events.Name{Kind: events.KindStored, Value: "s9"}
		l.names[n] = lifecycle.NameHit{Name: n, Record: &events.NameRecord{Name: n, Session: s, Epoch: 1, Owner: owner}}
	}
	tests := []struct {
		name  string
		by    events.Principal
		owner events.PrincipalName
		of    events.SessionID
		want  events.Code
	}{
		{"a gateway may not give a name of another session", gw1, gw1.Name, other, events.CodeIdentityConflict},
		{"an operator may not join sessions by a register either", op, op.Name, other, events.CodeIdentityConflict},
		{"a gateway may not name what another gave this session", gw1, gw2.Name, session, events.CodeForbidden},
		{"a host nobody wants may not name what another gave", rude, gw2.Name, session, events.CodeForbidden},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			foreign(l, tt.owner, tt.of)
			l.refused(tt.by, events.Register{Names: events.Names{StoredSessionID: "s9"}}, tt.want)
		})
	}
}

func TestAForeignKeyIsForbiddenToGatewaysAndOpenToTheOperator(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	body := events.Body{Text: "m"}
	l.refused(gw2, events.Register{Names: events.Names{GatewaySessionKey: "k1"}}, events.CodeForbidden)
	l.refused(gw2, events.Submit{To: "k1", Body: body}, events.CodeForbidden)
	l.refused(gw2, events.Submit{To: string(session), Body: body}, events.CodeForbidden)
	l.refused(rude, events.Submit{To: "k1", Kind: events.ItemSystem, Body: body}, events.CodeForbidden)
	l.refused(gw2, events.Reset{To: "k1"}, events.CodeForbidden)
	l.refused(gw2, events.Finalize{To: string(session)}, events.CodeForbidden)
	l.refused(gw2, events.Alias{To: "k1", Names: events.Names{GatewaySessionKey: "k9"}}, events.CodeForbidden)
	l.refused(gw2, events.Interrupt{To: "k1"}, events.CodeForbidden)
	do[events.Receipt](l, op, events.Submit{To: "k1", Body: body})
	do[events.Receipt](l, host, events.Submit{To: "k1", Kind: events.ItemSystem, Body: body}) // it is wanted
	do[events.Registered](l, op, events.Alias{To: "k1", Names: events.Names{GatewaySessionKey: "k2"}})
}

func TestANameOfAnEndedEpochIsGivenAgainOnlyToItsSession(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	names := events.Names{GatewaySessionKey: "k1", StoredSessionID: "s1"}
	do[events.Registered](l, gw1, events.Register{Names: names})
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	if got := l.state.CurrentNames(); got.StoredSessionID != "" || got.GatewaySessionKey != "k1" {
		t.Errorf("after reset: %+v", got)
	}
	if own := l.state.NameOf(events.Name{Kind: events.KindStored, Value: "s1"}); own == nil || own.Current || own.Epoch != 1 {
		t.Errorf("old stored id: %+v", own)
	}
	do[events.Registered](l, gw1, events.Register{Names: names})
	own := l.state.NameOf(events.Name{Kind: events.KindStored, Value: "s1"})
	rec := l.names[events.Name{Kind: events.KindStored, Value: "s1"}].Record
	if own == nil || !own.Current || own.Epoch != 2 || rec.Epoch != 2 {
		t.Errorf("given again: %+v, record %+v", own, rec)
	}
}

func TestOldIdsLeadToTheirEpochUnlessFollowed(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	do[events.Registered](l, gw1, events.Register{Names: events.Names{GatewaySessionKey: "k1", StoredSessionID: "s1"}})
	do[events.Receipt](l, gw1, events.Submit{To: "s1"})
	do[events.EpochAnswer](l, gw1, events.Reset{To: "s1"})
	l.refused(gw1, events.Submit{To: "s1"}, events.CodeEpochEnded)
	l.refused(gw1, events.Reset{To: "s1"}, events.CodeEpochEnded)
	l.refused(gw1, events.Alias{To: "s1"}, events.CodeEpochEnded)
	if r := do[events.Receipt](l, gw1, events.Submit{To: "s1", Follow: true}); r.Epoch != 2 {
		t.Errorf("followed to %+v", r)
	}
	do[events.EpochAnswer](l, gw1, events.Finalize{To: "k1", Reason: "done"})
	l.refused(gw1, events.Alias{To: "k1", Names: events.Names{GatewaySessionKey: "k3"}}, events.CodeEpochEnded)
}

func TestReanchorGrowsOneLineageWithinTheEpoch(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	do[events.Registered](l, gw1, events.Register{Names: events.Names{GatewaySessionKey: "k1", StoredSessionID: "s1"}})
	f := do[events.Attached](l, host, events.Attach{Session: session, Instance: "i1", RuntimeSessionID: "r1"}).Fence
	l.refused(host, events.Reanchor{Session: session, StoredSessionID: "s2"}, events.CodeStaleFence)
	do[events.Registered](l, host, events.Reanchor{Session: session, Fence: f, StoredSessionID: "s2", Reason: "compressed"})
	do[events.Registered](l, host, events.Reanchor{Session: session, Fence: f, StoredSessionID: "s2"}) // nothing new
	l.refused(host, events.Reanchor{Session: session, Fence: f, StoredSessionID: "s1"}, events.CodeIdentityConflict)
	want := []events.Anchor{{StoredSessionID: "s1", Epoch: 1}, {StoredSessionID: "s2", Epoch: 1, Reason: "compressed"}}
	if diff := cmp.Diff(want, l.state.Lineage); diff != "" {
		t.Errorf("lineage (-want +got):\n%s", diff)
	}
	got := l.state.CurrentNames()
	if got.StoredSessionID != "s2" || got.RuntimeSessionID != "r1" || l.state.Epoch != 1 || count(l, events.TypeSessionReanchored) != 1 {
		t.Errorf("names %+v epoch %d", got, l.state.Epoch)
	}
	do[events.Receipt](l, gw1, events.Submit{To: "s1"}) // the old id still leads to the session; gw1 gave it
	do[events.EpochAnswer](l, gw1, events.Reset{To: "k1"})
	if l.state.Lineage != nil || l.state.Host == nil || l.state.Host.Fence != f {
		t.Errorf("after reset: lineage %v, host %+v", l.state.Lineage, l.state.Host)
	}
}

func TestRuntimeIdsOfManyAttachesAreBounded(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	for i := range lifecycle.MaxRuntimes + 10 {
		f := do[events.Attached](l, host, events.Attach{
			Session: session, Instance: "i1", RuntimeSessionID: events.RuntimeSessionID(fmt.Sprint("r", i)),
		}).Fence
		do[events.Done](l, host, events.Detach{Session: session, Fence: f})
	}
	if got := len(l.state.Names); got != lifecycle.MaxRuntimes+1 {
		t.Errorf("%d names", got)
	}
	if got := l.state.CurrentNames(); got.RuntimeSessionID != "r73" || got.GatewaySessionKey != "k1" {
		t.Errorf("names %+v", got)
	}
	if l.names[events.Name{Kind: events.KindRuntime, Value: "r0"}].Record.Session != session {
		t.Error("the oldest id's record still leads to the session")
	}
}
