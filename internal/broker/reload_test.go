package broker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

// Two reloads that overlap must not end with the older file in use: a principal that was
// added and reloaded would be refused.
func TestAPrincipalThatWasReloadedStaysKnownWhateverElseReloads(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	bustest.Principal(t, b, "default", "first", events.RoleGateway) // the file exists from now on
	var others sync.WaitGroup
	done := make(chan struct{})
	for range 4 { // as the watch of the file does
		others.Go(func() { reloadUntil(t, b, done) })
	}
	for range 30 {
		p := events.Principal{Profile: "default", Name: events.PrincipalName("gw-" + nameSuffix(t)), Role: events.RoleGateway}
		addAndReload(t, b, p)
		for begun := time.Now(); time.Since(begun) < 5*time.Millisecond; {
			if _, ok := b.Registry().Lookup(p.Profile, p.Name); !ok {
				t.Errorf("%s was added and reloaded, and is unknown", p.Name)
				break
			}
		}
	}
	close(done)
	others.Wait()
}

func reloadUntil(t *testing.T, b *broker.Broker, done <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-done:
			return
		default:
		}
		if err := b.Reload(); err != nil {
			t.Error(err)
			return
		}
	}
}

func addAndReload(t *testing.T, b *broker.Broker, p events.Principal) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.AddPrincipal(b.Dir(), p, public); err != nil {
		t.Fatal(err)
	}
	if err := b.Reload(); err != nil {
		t.Fatal(err)
	}
}

// nameSuffix is a fresh lower-case token.
func nameSuffix(t *testing.T) string {
	t.Helper()
	return events.NameHash(events.NewID())
}
