package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

const profile = events.Profile("default")

// startServer starts a bare NATS server on loopback: no authority, no store.
func startServer(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	opts := &server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, AlwaysEnableNonce: true, MaxPayload: events.MaxPayload}
	for _, fn := range change {
		fn(opts)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatalf("new server: %v", err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(5 * time.Second) {
		t.Fatal("server not ready after 5 s")
	}
	return s
}

// samePort restarts a server where another was.
func samePort(t testing.TB, s *server.Server) func(*server.Options) {
	t.Helper()
	addr, ok := s.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("server listens on %v", s.Addr())
	}
	return func(o *server.Options) { o.Port = addr.Port }
}

func principal(name events.PrincipalName, role events.Role) events.Principal {
	return events.Principal{Profile: profile, Name: name, Role: role}
}

func credentials(t testing.TB, name events.PrincipalName, role events.Role) client.Credentials {
	t.Helper()
	c, _, err := client.NewCredentials(principal(name, role))
	if err != nil {
		t.Fatalf("new credentials: %v", err)
	}
	return c
}

// connect connects a gateway, closed when t ends.
func connect(t testing.TB, s *server.Server, change ...func(*client.Config)) *client.Conn {
	t.Helper()
	cfg := client.Config{URL: s.ClientURL(), Credentials: credentials(t, "gw", events.RoleGateway), Logger: quiet()}
	for _, fn := range change {
		fn(&cfg)
	}
	c, err := client.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { mustClose(t, c) })
	return c
}

func mustClose(t testing.TB, c *client.Conn) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// command is a command as the authority sees it.
type command struct {
	t     testing.TB
	nc    *nats.Conn
	msg   *nats.Msg
	event events.Event
}

// respond stands in for the authority: fn is called for every command, one at a time.
func respond(t testing.TB, s *server.Server, fn func(command)) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.NoReconnect())
	if err != nil {
		t.Fatalf("connect responder: %v", err)
	}
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe(events.PatternCmd, func(m *nats.Msg) {
		e, err := events.Decode(m.Header, m.Data)
		if err != nil {
			t.Errorf("decode a command: %v", err)
			return
		}
		fn(command{t: t, nc: nc, msg: m, event: e})
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatalf("subscribe responder: %v", err)
	}
	return nc
}

func (c command) id() string { return c.event.ID() }

// ask decodes the command's data.
func ask[T any](c command) T {
	c.t.Helper()
	var d T
	if err := json.Unmarshal(c.event.Data(), &d); err != nil {
		c.t.Errorf("decode data of %s: %v", c.event.Type(), err)
	}
	return d
}

func (c command) answer(v any) { c.send(events.StatusOK, "", v) }

func (c command) end(v any) { c.send(events.StatusOK, events.PageEnd, v) }

func (c command) refuse(e *events.Error) { c.send(events.StatusError, events.PageEnd, e) }

func (c command) send(status, page string, v any) {
	c.t.Helper()
	m := nats.NewMsg(c.msg.Reply)
	m.Header.Set(events.HeaderStatus, status)
	if page != "" {
		m.Header.Set(events.HeaderPage, page)
	}
	var err error
	if m.Data, err = json.Marshal(v); err == nil {
		err = c.nc.PublishMsg(m)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		c.t.Errorf("answer %s: %v", c.event.Type(), err)
	}
}

// within returns a context for one step of a test.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// await polls until ok or ten seconds have passed.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

// receive takes from a channel, for ten seconds at most.
func receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("waited 10 s for %s", what)
		panic("unreachable")
	}
}

func wantCode(t testing.TB, err error, want events.Code) *events.Error {
	t.Helper()
	var e *events.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Fatalf("got error %v, want code %s", err, want)
	}
	return e
}

func text(n int) string { return strings.Repeat("0", n) }
