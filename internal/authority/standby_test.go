package authority_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/authority"
	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/leases"
	"keryx/internal/sessionlog"
)

// standing is one authority over a broker that others share.
type standing struct {
	auth   *authority.Authority
	conn   *nats.Conn
	cancel context.CancelCauseFunc
	done   chan error
}

// stand runs an authority until the test ends.
func stand(t *testing.T, b *broker.Broker, change func(*authority.Config)) *standing {
	t.Helper()
	s := &standing{done: make(chan error, 1)}
	var err error
	if s.conn, err = b.System("authority-" + events.NewID()); err != nil {
		t.Fatal(err)
	}
	log, err := sessionlog.Open(t.Context(), s.conn)
	if err != nil {
		t.Fatal(err)
	}
	store, err := leases.OpenStore(t.Context(), s.conn)
	if err != nil {
		t.Fatal(err)
	}
	cfg := authority.Config{
		Conn: s.conn, Log: log, Leases: store, Registry: b.Registry(), Generation: 1,
		AuthorityTTL: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	}
	change(&cfg)
	if s.auth, err = authority.New(cfg); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancelCause(context.Background())
	go func() { s.done <- s.auth.Run(ctx) }()
	t.Cleanup(func() {
		s.cancel(authority.ErrStopped)
		<-s.done
		s.conn.Close()
	})
	return s
}

func connectTo(t *testing.T, b *broker.Broker, name events.PrincipalName, role events.Role) *client.Conn {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Config{
		Credentials: bustest.Principal(t, b, profile, name, role), InProcess: b.InProcess(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func awaitActive(t *testing.T, s *standing, within time.Duration) time.Duration {
	t.Helper()
	begun := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !s.auth.Active() {
		if time.Since(begun) > within {
			t.Fatalf("not active within %v", within)
		}
		<-tick.C
	}
	return time.Since(begun)
}

func TestAStandbyTakesOverAtOnceAfterACleanStop(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	first := stand(t, b, func(*authority.Config) {})
	awaitActive(t, first, 5*time.Second)
	second := stand(t, b, func(*authority.Config) {})
	gw := connectTo(t, b, "gw", events.RoleGateway)
	id := register(t, gw, "k:1", events.Policy{})
	if second.auth.Active() {
		t.Fatal("two authorities are active")
	}
	first.cancel(authority.ErrStopped)
	took := awaitActive(t, second, 2*time.Second)
	if took > time.Second {
		t.Errorf("the standby took %v after a clean stop", took)
	}
	if again := register(t, gw, "k:1", events.Policy{}); again != id {
		t.Errorf("the standby knows the key as session %s, want %s", again, id)
	}
}

func TestAStandbyTakesOverWithinTheTTLAfterACrashAndNoAnswerIsLost(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	first := stand(t, b, func(*authority.Config) {})
	awaitActive(t, first, 5*time.Second)
	second := stand(t, b, func(*authority.Config) {})
	gw := connectTo(t, b, "gw", events.RoleGateway)
	id := register(t, gw, "k:1", events.Policy{})
	first.conn.Close() // it can neither renew, nor append, nor answer
	crashed := time.Now()
	submit(t, gw, "k:1", "sent while nobody was active")
	if took := time.Since(crashed); took > 2*time.Second+2500*time.Millisecond {
		t.Errorf("the command was answered %v after the crash; the ttl is 2 s", took)
	}
	awaitActive(t, second, time.Second)
	if got := types(record(t, gw, id.Scope())); len(got) != 2 {
		t.Errorf("the record is %v", got)
	}
}

// Two authorities that both take every command stand for the moment in which one has
// not yet noticed that it lost its lease.
func TestTwoOverlappingAuthoritiesWriteEachStepOnce(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ sessions, each int }{
		"few sessions":                {4, 25},
		"so many that commits gather": {160, 4},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); overlap(t, of.sessions, of.each) })
	}
}

func overlap(t *testing.T, sessions, each int) {
	t.Helper()
	b := bustest.Broker(t)
	both := [2]*standing{}
	for i := range both {
		both[i] = stand(t, b, func(c *authority.Config) { c.Offline = true })
		awaitActive(t, both[i], 5*time.Second)
	}
	gw := connectTo(t, b, "gw", events.RoleGateway)
	var wg sync.WaitGroup
	ids := make([]events.SessionID, sessions)
	for s := range sessions {
		wg.Go(func() {
			key := fmt.Sprintf("k:%d", s)
			ids[s] = register(t, gw, key, events.Policy{})
			for i := range each {
				r := submit(t, gw, string(ids[s]), fmt.Sprintf("message %d", i))
				if r.Session != ids[s] {
					t.Errorf("message %d went to session %s", i, r.Session)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range both { // one that is alone reads the whole log
		s.cancel(authority.ErrStopped)
		s.done <- <-s.done
	}
	awaitActive(t, stand(t, b, func(c *authority.Config) { c.Offline = true }), 5*time.Second)
	for _, id := range ids {
		seen := map[events.CommandID]int{}
		rs := record(t, gw, id.Scope())
		for i, r := range rs {
			seen[r.Causation]++
			if int(r.Ordinal) != i+1 {
				t.Errorf("session %s: ordinal %d at place %d", id, r.Ordinal, i+1)
			}
		}
		if len(rs) != each+1 {
			t.Errorf("session %s has %d events, want %d", id, len(rs), each+1)
		}
		for cmd, n := range seen {
			if n != 1 {
				t.Errorf("command %s caused %d events", cmd, n)
			}
		}
	}
}
