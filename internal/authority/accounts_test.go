package authority_test

import (
	"fmt"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

// holdAccount acquires the lease of an account by a bare command; whoever held it in a bus
// before is buried in a moment.
func holdAccount(t *testing.T, b *bus, c *client.Conn, name events.AccountName) (a events.LeaseAnswer) {
	t.Helper()
	b.await("the account's lease", func() bool {
		err := c.Do(t.Context(), events.CmdLeaseAcquire, events.AcquireLease{
			Key: events.LeaseKey{Profile: profile, Kind: events.LeaseAccount, Name: string(name)}, Instance: c.Instance(), TTLMS: 60_000,
		}, &a)
		if err != nil && events.CodeOf(err) != events.CodeLeaseHeld {
			t.Fatal(err)
		}
		return err == nil
	})
	return a
}

func sentFact(c *client.Conn, name events.AccountName, fence events.Fence, send string) events.RecordGateway {
	return events.RecordGateway{Account: name, Instance: c.Instance(), Fence: fence, Sent: &events.GatewaySent{
		Account: name, Place: events.Place{Chat: "C1"}, Send: send, Part: 1, Parts: 1,
	}}
}

func TestAnAccountsRecordIsWrittenByTheHolderOfItsLeaseAlone(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, other := b.connect("web", events.RoleGateway), b.connect("other", events.RoleGateway)
	held := holdAccount(t, b, gw, "bot")
	done := do[events.Done](t, gw, events.CmdGatewayRecord, sentFact(gw, "bot", held.Fence, "a"))
	if done.Sequence == 0 {
		t.Error("the answer does not say where the fact is")
	}
	refused(t, other, events.CmdGatewayRecord, sentFact(other, "bot", held.Fence, "b"), events.CodeLeaseLost)
	refused(t, gw, events.CmdGatewayRecord, sentFact(gw, "bot2", held.Fence, "b"), events.CodeLeaseLost)
	stale := held.Fence
	stale.Sequence--
	refused(t, gw, events.CmdGatewayRecord, sentFact(gw, "bot", stale, "b"), events.CodeLeaseLost)
	two := sentFact(gw, "bot", held.Fence, "b")
	two.Dropped = &events.GatewayDropped{Account: "bot", Reason: "x"}
	refused(t, gw, events.CmdGatewayRecord, two, events.CodeInvalid)
	foreign := sentFact(gw, "bot", held.Fence, "b")
	foreign.Sent.Account = "bot2"
	refused(t, gw, events.CmdGatewayRecord, foreign, events.CodeInvalid)
	if got := record(t, gw, "account-bot"); len(got) != 1 || got[0].Type != events.TypeGatewaySent {
		t.Errorf("on record are %+v", got)
	}
	if _, err := gw.Page(t.Context(), "account-nobody", 0, 1); events.CodeOf(err) != events.CodeUnknownSession {
		t.Errorf("an account without a record is answered %v", err)
	}
}

func TestAnAccountsRecordGoesOnDenselyAfterARestart(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("web", events.RoleGateway)
	for round := range 3 {
		held := holdAccount(t, b, gw, "bot")
		for i := range 3 {
			do[events.Done](t, gw, events.CmdGatewayRecord, sentFact(gw, "bot", held.Fence, fmt.Sprint(round, i)))
		}
		if round < 2 {
			if err := gw.Close(); err != nil {
				t.Fatal(err)
			}
			b.stop()
			b.start()
			gw = b.connect("web", events.RoleGateway)
		}
	}
	tips, err := gw.Tips(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, tip := range tips {
		found = found || tip.Scope == "account-bot" && tip.Ordinal == 9
	}
	if !found {
		t.Errorf("the tips %v lack the account's", tips)
	}
	got := record(t, gw, "account-bot")
	if len(got) != 9 {
		t.Fatalf("%d facts are on record, want 9", len(got))
	}
	before := time.Time{}
	for i, r := range got {
		if r.Ordinal != events.Ordinal(i+1) || r.Time.Before(before) {
			t.Errorf("fact %d has ordinal %d, time %s", i+1, r.Ordinal, r.Time)
		}
		before = r.Time
	}
}
