package travel_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startBus starts a bus in a directory of its own and connects a gateway and a host that
// answers each message with itself.
func startBus(t *testing.T) (gw *client.Conn) {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("start bus: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop bus: %v", err)
		}
	})
	connect := func(name events.PrincipalName, role events.Role) *client.Conn {
		c, err := n.Connect(t.Context(), events.Principal{Profile: "default", Name: name, Role: role})
		if err != nil {
			t.Fatalf("connect %s: %v", name, err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	serve(t, connect("agent", events.RoleHost))
	return connect("gw", events.RoleGateway)
}

func serve(t *testing.T, host *client.Conn) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- host.ServeHost(ctx, client.HostConfig{Handle: func(_ context.Context, turn *client.Turn) client.Result {
			return client.Result{Reply: turn.Items[0].Body.Text}
		}})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// told sends messages to a session of its own, each after the one before was settled.
func told(t *testing.T, gw *client.Conn, texts ...string) events.SessionID {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reg, err := gw.Register(ctx, events.Names{GatewaySessionKey: events.GatewaySessionKey(t.Name())},
		events.Policy{Hosts: []events.PrincipalName{"agent"}})
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	for _, text := range texts {
		r, err := gw.Submit(ctx, events.Submit{To: string(reg.Session), Body: events.Body{Text: text}})
		if err == nil {
			_, err = gw.WaitReceipt(ctx, r.ID, func(r events.Receipt) bool { return r.State == events.StateSettled })
		}
		if err != nil {
			t.Fatalf("send %q: %v", text, err)
		}
	}
	return reg.Session
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(b)
}
