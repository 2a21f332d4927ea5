package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/node"
	"keryx/internal/sessionlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg node.Config) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func stop(t *testing.T, n *node.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// register makes a session by a gateway of the node's own process.
func register(t *testing.T, n *node.Node, key string, p events.Policy) (*client.Conn, events.Registered) {
	t.Helper()
	c, err := n.Connect(t.Context(), events.Principal{Profile: "default", Name: "gw", Role: events.RoleGateway})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Register(t.Context(), events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}, p)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func shut(t *testing.T, c *client.Conn) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestADirectoryHasOneNodeAtATime(t *testing.T) {
	t.Parallel()
	cfg := node.Config{Dir: t.TempDir()}
	n := start(t, cfg)
	_, err := node.Start(t.Context(), cfg)
	var held *broker.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("a second start: %v, want *HeldError naming process %d", err, os.Getpid())
	}
	stop(t, n)
	stop(t, start(t, cfg)) // free again
}

func TestOfflineReadingChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, node.Config{Dir: dir})
	c, r := register(t, n, "k:1", events.Policy{IdleTTLMS: 1})
	shut(t, c)
	stop(t, n)
	var first, second []events.Tip
	for _, into := range []*[]events.Tip{&first, &second} {
		op, done, err := node.OpenOffline(t.Context(), dir, "default", nil)
		if err != nil {
			t.Fatal(err)
		}
		if *into, err = op.Tips(t.Context(), r.Session.Scope()); err != nil {
			t.Error(err)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	if len(first) != 1 || len(second) != 1 || first[0] != second[0] {
		t.Errorf("the tips were %v, then %v", first, second)
	}
}

func TestSessionsOfTheBussOwnLifetimeEndWithItOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, node.Config{Dir: dir})
	c, r := register(t, n, "k:1", events.Policy{Lifetime: events.LifetimeBus})
	shut(t, c)
	stop(t, n)
	n = start(t, node.Config{Dir: dir})
	c, again := register(t, n, "k:1", events.Policy{Lifetime: events.LifetimeBus})
	if again.Session != r.Session || again.Epoch != 2 {
		t.Errorf("the key is session %s epoch %d after the restart, want %s epoch 2", again.Session, again.Epoch, r.Session)
	}
	page, err := c.Page(t.Context(), r.Session.Scope(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, rec := range page.Records {
		if rec.Type == events.TypeSessionFinalized {
			d, err := events.DataOf[events.SessionFinalized](rec)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, d.Reason)
		}
	}
	if len(reasons) != 1 || reasons[0] != events.ReasonBusStopped {
		t.Errorf("finalized for %v, want once, %s", reasons, events.ReasonBusStopped)
	}
	shut(t, c)
	stop(t, n)
}

func TestAStoreThatWentBackIsRefusedUntilTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, node.Config{Dir: dir})
	c, r := register(t, n, "k:1", events.Policy{})
	shut(t, c)
	stop(t, n)
	raise(t, filepath.Join(dir, "high-water.json"))

	_, err := node.Start(t.Context(), node.Config{Dir: dir})
	var regressed *sessionlog.RegressedError
	if !errors.As(err, &regressed) || regressed.HighWater != 1000 {
		t.Fatalf("start of a store that went back: %v, want *RegressedError from 1000", err)
	}
	n = start(t, node.Config{Dir: dir, AcceptLoss: true})
	c, _ = register(t, n, "k:2", events.Policy{})
	page, err := c.Page(t.Context(), events.ScopeProfile, 0, 0)
	if err != nil || len(page.Records) != 1 || page.Records[0].Type != events.TypeStoreRegressed {
		t.Fatalf("the profile's record has %v, %v; want the loss", page.Records, err)
	}
	d, err := events.DataOf[events.StoreRegressed](page.Records[0])
	if err != nil || d.HighWater != 1000 || d.Generation != 2 {
		t.Errorf("the loss is recorded as %+v, %v", d, err)
	}
	if _, err := c.Show(t.Context(), string(r.Session)); err != nil {
		t.Errorf("what is left is not served: %v", err)
	}
	shut(t, c)
	stop(t, n)
	stop(t, start(t, node.Config{Dir: dir})) // accepted once, accepted
}

// raise makes a high-water file claim that the store once held a thousand messages.
func raise(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	m["last_sequence"] = 1000
	if b, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
