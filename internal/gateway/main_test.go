package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// bus starts a node that ends with the test.
func bus(t *testing.T, cfg node.Config) *node.Node {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	n, err := node.Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("start node: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop node: %v", err)
		}
	})
	return n
}

func connect(t *testing.T, n *node.Node, name events.PrincipalName, role events.Role) *client.Conn {
	t.Helper()
	c, err := n.Connect(t.Context(), events.Principal{Profile: "default", Name: name, Role: role})
	if err != nil {
		t.Fatalf("connect %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close %s: %v", name, err)
		}
	})
	return c
}

// host runs turns with a handler until the test ends.
func host(t *testing.T, c *client.Conn, handle func(context.Context, *client.Turn) client.Result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- c.ServeHost(ctx, client.HostConfig{Handle: handle, Logger: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve host: %v", err)
		}
	})
}

// echo replies with what it was told, and fails what begins with "fail".
func echo(_ context.Context, t *client.Turn) client.Result {
	text := t.Items[0].Body.Text
	if len(text) >= 4 && text[:4] == "fail" {
		return client.Result{Outcome: events.OutcomeFailed, Error: "as asked", Reply: text}
	}
	return client.Result{Outcome: events.OutcomeCompleted, Reply: "you said " + text}
}

// untilStopped runs until the turn is interrupted.
func untilStopped(ctx context.Context, _ *client.Turn) client.Result {
	<-ctx.Done()
	return client.Result{Outcome: events.OutcomeAborted, Error: context.Cause(ctx).Error()}
}

// front notes what it is told, one line each, and lets tests wait for a line.
type front struct {
	mu    sync.Mutex
	lines []string
	state gateway.State
	told  chan struct{}
}

func newFront() *front { return &front{told: make(chan struct{}, 1)} }

func (f *front) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
	f.wakeLocked()
}

func (f *front) wakeLocked() {
	select {
	case f.told <- struct{}{}:
	default:
	}
}

func (f *front) Message(m gateway.Message) { f.note("message %s own %v: %s", m.Sender, m.Own, m.Text) }
func (f *front) Started(t gateway.Turn)    { f.note("started own %v", t.Own) }
func (f *front) Piece(_ gateway.Turn, s string) {
	f.note("piece %q", s)
}

func (f *front) Ended(e gateway.Ended) {
	f.note("ended own %v %s reply %q rest %q whole %v late %v error %q", e.Own, e.Outcome, e.Reply, e.Rest, e.Whole, e.Late, e.Error)
}
func (f *front) Notice(text string) { f.note("notice %s", text) }
func (f *front) State(s gateway.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = s
	f.wakeLocked()
}

func (f *front) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.lines...)
}

// until waits until ok says yes of what was told.
func (f *front) until(t *testing.T, what string, ok func(lines []string, s gateway.State) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		f.mu.Lock()
		done := ok(f.lines, f.state)
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-f.told:
		case <-deadline:
			t.Fatalf("%s: not told of it, but of %q", what, f.all())
		}
	}
}

func (f *front) line(t *testing.T, want string) {
	t.Helper()
	f.until(t, want, func(lines []string, _ gateway.State) bool {
		for _, l := range lines {
			if l == want {
				return true
			}
		}
		return false
	})
}

// chat opens a chat and runs it with a front until the test ends.
func chat(t *testing.T, cfg gateway.Config, f gateway.Front) *gateway.Chat {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := gateway.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open chat: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx, f) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("run chat: %v", err)
		}
	})
	return c
}

func send(t *testing.T, c *gateway.Chat, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := c.Send(t.Context(), text); err != nil {
			t.Fatalf("send %q: %v", text, err)
		}
	}
}

func settle(t *testing.T, c *gateway.Chat) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Settled(ctx, 0); err != nil {
		t.Fatalf("settle: %v", err)
	}
}
