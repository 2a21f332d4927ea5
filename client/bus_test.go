package client_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/node"
)

// bus is a real bus in a directory of its own. Its clients reach it over loopback, so
// that they outlive its restarts.
type bus struct {
	t    testing.TB
	cfg  node.Config
	node *node.Node
}

func startBus(t testing.TB) *bus {
	t.Helper()
	b := &bus{t: t, cfg: node.Config{Dir: t.TempDir(), Logger: quiet(), AuthorityTTL: 2 * time.Second}}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *bus) start() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	n, err := node.Start(ctx, b.cfg)
	if err != nil {
		b.t.Fatalf("start bus: %v", err)
	}
	b.node = n
	await(b.t, "the authority to be active", n.Ready)
}

func (b *bus) stop() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.node.Stop(ctx); err != nil {
		b.t.Errorf("stop bus: %v", err)
	}
}

// restart stops the bus and starts it where it was.
func (b *bus) restart() {
	b.t.Helper()
	b.cfg.Listen = hostPort(b.t, b.node.Broker().URL())
	b.stop()
	b.start()
}

// connect connects a principal that is kept over restarts; closed when t ends.
func (b *bus) connect(name events.PrincipalName, role events.Role) *client.Conn {
	b.t.Helper()
	c, err := client.Connect(b.t.Context(), client.Config{
		URL: b.node.Broker().URL(), Credentials: addPrincipal(b.t, b.node.Broker(), name, role), Logger: quiet(),
	})
	if err != nil {
		b.t.Fatalf("connect %s: %v", name, err)
	}
	b.t.Cleanup(func() { mustClose(b.t, c) })
	return c
}

// serve runs a host until the returned function is called or t ends.
func (b *bus) serve(c *client.Conn, cfg client.HostConfig) (stop func() error) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.ServeHost(ctx, cfg) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	b.t.Cleanup(func() {
		if err := stop(); err != nil {
			b.t.Errorf("serve host: %v", err)
		}
	})
	return stop
}

func (b *bus) register(c *client.Conn, key string) events.SessionID {
	b.t.Helper()
	r, err := c.Register(within(b.t, 10*time.Second), events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}, events.Policy{})
	if err != nil {
		b.t.Fatalf("register %s: %v", key, err)
	}
	return r.Session
}

func (b *bus) submit(c *client.Conn, to, text string) events.ReceiptID {
	b.t.Helper()
	r, err := c.Submit(within(b.t, 10*time.Second), events.Submit{To: to, Body: events.Body{Text: text}})
	if err != nil {
		b.t.Fatalf("submit to %s: %v", to, err)
	}
	return r.ID
}

// settled waits for an item's end and returns its turn.
func (b *bus) settled(c *client.Conn, id events.ReceiptID) events.TurnView {
	b.t.Helper()
	ctx := within(b.t, 30*time.Second)
	r, err := c.WaitReceipt(ctx, id, func(r events.Receipt) bool { return r.State == events.StateSettled })
	if err != nil {
		b.t.Fatalf("wait for %s: %v (it is %s)", id, err, r.State)
	}
	v, err := c.Turn(ctx, r.Turn)
	if err != nil {
		b.t.Fatalf("turn %s: %v", r.Turn, err)
	}
	return v
}

// types returns the short types of a session's record.
func (b *bus) types(c *client.Conn, id events.SessionID) map[string]int {
	b.t.Helper()
	out := make(map[string]int)
	for from := events.Sequence(0); ; {
		p, err := c.Page(within(b.t, 10*time.Second), id.Scope(), from, 0)
		if err != nil {
			b.t.Fatalf("page: %v", err)
		}
		for _, r := range p.Records {
			out[r.Type.Short()]++
		}
		if from = p.Next; from == 0 {
			return out
		}
	}
}
