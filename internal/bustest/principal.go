package bustest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
)

// Principal adds a principal to b's principals.yaml and returns its credentials, which
// b takes at once.
func Principal(t testing.TB, b *broker.Broker, profile events.Profile, name events.PrincipalName, role events.Role) client.Credentials {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatalf("make key: %v", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatalf("read public key: %v", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatalf("read seed: %v", err)
	}
	p := events.Principal{Profile: profile, Name: name, Role: role}
	if err := broker.AddPrincipal(b.Dir(), p, public); err != nil {
		t.Fatalf("add principal %s: %v", name, err)
	}
	if err := b.Reload(); err != nil {
		t.Fatalf("reload principals: %v", err)
	}
	return client.Credentials{Principal: p, Seed: seed}
}

// Connect makes a bare NATS connection with a principal's credentials, closed when t
// ends. opts override its settings.
func Connect(t testing.TB, b *broker.Broker, c client.Credentials, opts ...nats.Option) *nats.Conn {
	t.Helper()
	pair, err := nkeys.FromSeed(c.Seed)
	if err != nil {
		t.Fatalf("read seed: %v", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatalf("read public key: %v", err)
	}
	all := append([]nats.Option{
		nats.Nkey(public, pair.Sign), nats.CustomInboxPrefix(events.InboxPrefix(c.Principal.Profile, c.Principal.Name)),
		nats.InProcessServer(b.InProcess()), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect("", all...)
	if err != nil {
		t.Fatalf("connect %s: %v", c.Principal.Name, err)
	}
	t.Cleanup(nc.Close)
	return nc
}
