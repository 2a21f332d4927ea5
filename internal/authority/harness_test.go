package authority_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/node"
)

const profile = events.Profile("default")

// bus is a running bus in a directory of its own.
type bus struct {
	t    testing.TB
	dir  string
	free func() (uint64, error) // nil: as much as there is
	node *node.Node
}

func startBus(t testing.TB) *bus {
	t.Helper()
	b := &bus{t: t, dir: t.TempDir()}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *bus) start() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	n, err := node.Start(ctx, node.Config{
		Dir: b.dir, Logger: slog.New(slog.NewTextHandler(b.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), AuthorityTTL: 2 * time.Second, Free: b.free,
	})
	if err != nil {
		b.t.Fatalf("start bus: %v", err)
	}
	b.node = n
	b.await("the authority to be active", func() bool { return n.Ready() })
}

func (b *bus) stop() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.node.Stop(ctx); err != nil {
		b.t.Errorf("stop bus: %v", err)
	}
}

// connect connects a principal; the connection is closed before the bus stops.
func (b *bus) connect(name events.PrincipalName, role events.Role) *client.Conn {
	b.t.Helper()
	c, err := b.node.Connect(b.t.Context(), events.Principal{Profile: profile, Name: name, Role: role})
	if err != nil {
		b.t.Fatalf("connect %s: %v", name, err)
	}
	b.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.t.Errorf("close %s: %v", name, err)
		}
	})
	return c
}

// await polls until ok or ten seconds have passed.
func (b *bus) await(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			b.t.Fatalf("waited 10 s for %s", what)
		}
	}
}

// do sends a command that must succeed and returns its answer.
func do[A any](t testing.TB, c *client.Conn, typ events.Type, data any) A {
	t.Helper()
	var a A
	if err := c.Do(t.Context(), typ, data, &a); err != nil {
		t.Fatalf("%s: %v", typ.Short(), err)
	}
	return a
}

// refused sends a command that must be refused with a code.
func refused(t testing.TB, c *client.Conn, typ events.Type, data any, want events.Code) *events.Error {
	t.Helper()
	err := c.Do(t.Context(), typ, data, nil)
	if events.CodeOf(err) != want || err == nil {
		t.Fatalf("%s: got error %v, want code %s", typ.Short(), err, want)
	}
	var e *events.Error
	asTyped(err, &e)
	return e
}

func register(t testing.TB, c *client.Conn, key string, p events.Policy) events.SessionID {
	t.Helper()
	return do[events.Registered](t, c, events.CmdSessionRegister, events.Register{
		Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}, Policy: p,
	}).Session
}

func submit(t testing.TB, c *client.Conn, to, text string) events.Receipt {
	t.Helper()
	return do[events.Receipt](t, c, events.CmdContinuationSubmit, events.Submit{To: to, Body: events.Body{Text: text}})
}

// record reads a scope's whole log.
func record(t testing.TB, c *client.Conn, scope events.Scope) []events.Record {
	t.Helper()
	var out []events.Record
	for from := events.Sequence(0); ; {
		page, err := c.Page(t.Context(), scope, from, 0)
		if err != nil {
			t.Fatalf("page of %s: %v", scope, err)
		}
		out = append(out, page.Records...)
		if page.Next == 0 {
			return out
		}
		from = page.Next
	}
}

// types returns the short types of records, without those to leave out.
func types(rs []events.Record, leaveOut ...events.Type) []string {
	var out []string
outer:
	for _, r := range rs {
		for _, t := range leaveOut {
			if r.Type == t {
				continue outer
			}
		}
		out = append(out, r.Type.Short())
	}
	return out
}

func count(rs []events.Record, t events.Type) int {
	n := 0
	for _, r := range rs {
		if r.Type == t {
			n++
		}
	}
	return n
}

// serve runs a host until the test ends.
func (b *bus) serve(c *client.Conn, handle func(context.Context, *client.Turn) client.Result) {
	b.t.Helper()
	b.serveWith(c, client.HostConfig{Handle: handle})
}

func (b *bus) serveWith(c *client.Conn, cfg client.HostConfig) {
	b.t.Helper()
	b.t.Cleanup(b.serveUntil(c, cfg))
}

// serveUntil serves until the function that it returns is called.
func (b *bus) serveUntil(c *client.Conn, cfg client.HostConfig) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.ServeHost(ctx, cfg) }()
	return func() {
		b.t.Helper()
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			b.t.Errorf("serve host: %v", err)
		}
	}
}

// settled waits until an item is settled.
func settled(t testing.TB, c *client.Conn, id events.ReceiptID) events.Receipt {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := c.WaitReceipt(ctx, id, func(r events.Receipt) bool { return r.State == events.StateSettled })
	if err != nil {
		t.Fatalf("wait for %s: %v", id, err)
	}
	return r
}
