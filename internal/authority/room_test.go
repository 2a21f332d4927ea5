package authority_test

import (
	"sync/atomic"
	"testing"

	"keryx/events"
)

func TestAFullFilesystemRefusesWhatBeginsAndTakesWhatEnds(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(1 << 30)
	b := &bus{t: t, dir: t.TempDir(), free: func() (uint64, error) { return free.Load(), nil }}
	b.start()
	t.Cleanup(b.stop)
	gw := b.connect("cli", events.RoleGateway)
	host := b.connect("shell", events.RoleHost)
	id := register(t, gw, "cli:room", events.Policy{Hosts: []events.PrincipalName{"shell"}})
	do[events.Attached](t, host, events.CmdSessionAttach, events.Attach{Session: id, Instance: host.Instance(), LeaseTTLMS: 15_000})
	first := submit(t, gw, string(id), "before")

	free.Store(4 << 10)
	b.await("the filesystem to be seen full", func() bool { return b.node.Broker().Room() != nil })
	refused(t, gw, events.CmdContinuationSubmit, events.Submit{To: string(id), Body: events.Body{Text: "x"}}, events.CodeStoreFull)
	refused(t, gw, events.CmdSessionRegister, events.Register{Names: events.Names{GatewaySessionKey: "cli:new"}}, events.CodeStoreFull)
	if r := do[events.Receipt](t, gw, events.CmdContinuationReceipt, events.ReceiptShow{ID: first.ID}); r.ID != first.ID {
		t.Errorf("what was taken before has the receipt %s, want %s", r.ID, first.ID)
	}
	do[any](t, gw, events.CmdSessionReset, events.Reset{To: string(id), Reason: "still possible"})

	free.Store(1 << 30)
	b.await("room to be seen", func() bool { return b.node.Broker().Room() == nil })
	submit(t, gw, string(id), "after")
}
