package bustest_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/events"
	"keryx/internal/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBrokersOfOneTestAreApartAndTakeTheirPrincipals(t *testing.T) {
	t.Parallel()
	one, two := bustest.Broker(t), bustest.Broker(t)
	if one.URL() == two.URL() || one.Dir() == two.Dir() {
		t.Errorf("two brokers share %s, %s", one.URL(), one.Dir())
	}
	creds := bustest.Principal(t, one, "main", "shell", events.RoleHost)
	nc := bustest.Connect(t, one, creds)
	system := bustest.System(t, one)
	sub, err := system.SubscribeSync("kx.cmd.main.shell.*.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := system.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nc.Publish("kx.cmd.main.shell.session.list", nil), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	if _, ok := two.Registry().Lookup("main", "shell"); ok {
		t.Error("the other broker knows the principal")
	}
	if _, err := sub.NextMsg(5 * time.Second); err != nil {
		t.Error(err)
	}
}

func TestBrokerCanBeStoppedAndItsStoreServedAgain(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := bustest.Broker(t, bustest.Dir(b.Dir()), bustest.Listen("127.0.0.1:0"))
	if again.Dir() != b.Dir() {
		t.Errorf("serves %s, want %s", again.Dir(), b.Dir())
	}
}
