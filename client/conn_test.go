package client_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

func TestConnectSaysThatNoBusAnswers(t *testing.T) {
	t.Parallel()
	_, err := client.Connect(t.Context(), client.Config{URL: "nats://127.0.0.1:1", Credentials: credentials(t, "gw", events.RoleGateway)})
	if wantCode(t, err, events.CodeUnavailable); !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("got %v", err)
	}
}

func TestConnectSaysThatTheKeyIsUnknown(t *testing.T) {
	t.Parallel()
	_, public, err := client.NewCredentials(principal("other", events.RoleGateway))
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	_, err = client.Connect(t.Context(), client.Config{URL: s.ClientURL(), Credentials: credentials(t, "gw", events.RoleGateway)})
	if wantCode(t, err, events.CodeForbidden); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v", err)
	}
}

func TestConnectSaysThatTheCredentialsNameAnotherPrincipal(t *testing.T) {
	t.Parallel()
	creds, public, err := client.NewCredentials(principal("gw", events.RoleGateway))
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) {
		o.Nkeys = []*server.NkeyUser{{Nkey: public, Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Allow: []string{events.InboxAll(profile, "gw")}},
		}}}
	})
	creds.Principal.Name = "somebody-else"
	_, err = client.Connect(t.Context(), client.Config{URL: s.ClientURL(), Credentials: creds, Logger: quiet()})
	wantCode(t, err, events.CodeForbidden)
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err = client.Connect(ctx, client.Config{URL: "nats://" + l.Addr().String(), Credentials: credentials(t, "gw", events.RoleGateway)})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's end", err)
	}
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	good := client.Config{URL: "nats://127.0.0.1:1", Credentials: credentials(t, "gw", events.RoleGateway)}
	for name, change := range map[string]func(*client.Config){
		"no credentials":          func(c *client.Config) { c.Credentials = client.Credentials{} },
		"neither URL nor process": func(c *client.Config) { c.URL = "" },
		"an instance of dots":     func(c *client.Config) { c.Instance = "a.>" },
	} {
		cfg := good
		change(&cfg)
		if c, err := client.Connect(t.Context(), cfg); err == nil {
			t.Errorf("%s: connected", name)
			mustClose(t, c)
		} else if events.CodeOf(err) == events.CodeUnavailable {
			t.Errorf("%s: dialled: %v", name, err)
		}
	}
}

func TestCloseIsBoundedWhileTheBusIsAway(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := connect(t, s)
	s.Shutdown()
	s.WaitForShutdown()
	await(t, "the connection to be lost", func() bool { return !conn.NATS().IsConnected() })
	begun := time.Now()
	mustClose(t, conn)
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("closing took %v", took)
	}
}

func TestAConnectionGoesInProcess(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(o *server.Options) { o.DontListen = true })
	respond(t, s, func(c command) { c.answer(named("S")) })
	instance := events.Instance(events.NewID())
	conn := connect(t, s, func(c *client.Config) { c.URL, c.InProcess, c.Instance = "", s, instance })
	if _, err := show(t.Context(), conn, "x"); err != nil {
		t.Error(err)
	}
	if conn.Instance() != instance || conn.Principal().Name != "gw" {
		t.Errorf("connected as %v, instance %s", conn.Principal(), conn.Instance())
	}
}

func TestARevokedKeyEndsCommandsAsForbidden(t *testing.T) {
	t.Parallel()
	creds, public, err := client.NewCredentials(principal("gw", events.RoleGateway))
	if err != nil {
		t.Fatal(err)
	}
	allow := func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} }
	s := startServer(t, allow)
	conn := connect(t, s, func(c *client.Config) { c.Credentials = creds })
	port := samePort(t, s)
	s.Shutdown()
	s.WaitForShutdown()
	_, other, err := client.NewCredentials(principal("other", events.RoleGateway))
	if err != nil {
		t.Fatal(err)
	}
	startServer(t, port, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: other}} })
	_, err = show(within(t, 20*time.Second), conn, "x")
	wantCode(t, err, events.CodeForbidden)
}
