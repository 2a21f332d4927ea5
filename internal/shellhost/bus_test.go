package shellhost_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/execution"
	"keryx/internal/node"
	"keryx/internal/shellhost"
)

// quiet takes what the bus and its parts have to say; with -v it is shown.
func quiet(t *testing.T) *slog.Logger {
	t.Helper()
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("test", t.Name())
	}
	return slog.New(slog.DiscardHandler)
}

// bus is a whole bus, reached over TCP so that it can be stopped and started again.
type bus struct {
	t    *testing.T
	dir  string
	addr string
	node *node.Node
}

func startBus(t *testing.T) *bus {
	t.Helper()
	b := &bus{t: t, dir: t.TempDir(), addr: "127.0.0.1:0"}
	b.start()
	b.addr = strings.TrimPrefix(b.node.Broker().URL(), "nats://")
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *bus) start() {
	b.t.Helper()
	var err error
	poll(b.t, func() bool {
		b.node, err = node.Start(b.t.Context(), node.Config{Dir: b.dir, Listen: b.addr, Logger: quiet(b.t)})
		// A child that another test forks at this moment has a copy of the lock until
		// it executes its program.
		var held *broker.HeldError
		return err == nil || !errors.As(err, &held) || held.PID != os.Getpid()
	}, func() string { return "the directory stays locked" })
	if err != nil {
		b.t.Fatalf("start bus: %v", err)
	}
}

func (b *bus) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.node.Stop(ctx); err != nil {
		b.t.Errorf("stop bus: %v", err)
	}
}

func (b *bus) credentials(name events.PrincipalName, role events.Role) client.Credentials {
	return bustest.Principal(b.t, b.node.Broker(), "p1", name, role)
}

// connect connects a principal over TCP, closed when the test ends.
func (b *bus) connect(c client.Credentials) *client.Conn {
	b.t.Helper()
	conn, err := client.Connect(b.t.Context(), client.Config{URL: "nats://" + b.addr, Credentials: c, Logger: quiet(b.t)})
	if err != nil {
		b.t.Fatalf("connect %s: %v", c.Principal.Name, err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// service runs fn until stop is called, at the latest at the end of the test.
func service(t *testing.T, name string, fn func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- fn(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(40 * time.Second):
			t.Errorf("%s did not stop", name)
		}
	})
	t.Cleanup(stop)
	return stop
}

// chat is a session on a bus with the shell and an executor.
type chat struct {
	*bus
	gateway      *client.Conn
	session      events.SessionID
	stopExecutor func()
}

func startChat(t *testing.T) *chat {
	t.Helper()
	b := startBus(t)
	executor := b.connect(b.credentials("exec-1", events.RoleExecutor))
	host := b.connect(b.credentials("shell", events.RoleHost))
	gateway := b.connect(b.credentials("gate", events.RoleGateway))
	c := &chat{bus: b, gateway: gateway}
	spool := t.TempDir()
	c.stopExecutor = service(t, "executor", func(ctx context.Context) error {
		return execution.Run(ctx, executor, execution.Config{
			Target: events.TargetSpec{Name: "local", Cwd: b.t.TempDir()}, SpoolDir: spool, Logger: quiet(t),
		})
	})
	service(t, "host", func(ctx context.Context) error {
		return host.ServeHost(ctx, client.HostConfig{Handle: shellhost.Handler(quiet(t)), Logger: quiet(t)})
	})
	r, err := gateway.Register(t.Context(), events.Names{GatewaySessionKey: "cli:local"}, events.Policy{Target: "local", Hosts: []events.PrincipalName{"shell"}})
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	c.session = r.Session
	return c
}

// say submits a message.
func (c *chat) say(text string) events.Receipt {
	c.t.Helper()
	r, err := c.gateway.Submit(c.t.Context(), events.Submit{To: string(c.session), Body: events.Body{Text: text}})
	if err != nil {
		c.t.Fatalf("submit %q: %v", text, err)
	}
	return r
}

// until polls a receipt until it has a state.
func (c *chat) until(id events.ReceiptID, state events.ItemState) (r events.Receipt) {
	c.t.Helper()
	poll(c.t, func() bool {
		var err error
		if r, err = c.gateway.Receipt(c.t.Context(), id); err != nil {
			c.t.Fatalf("read receipt: %v", err)
		}
		return r.State == state
	}, func() string {
		v, err := c.gateway.Show(c.t.Context(), string(c.session))
		return fmt.Sprintf("receipt %+v never was %s; session %+v, %v", r, state, v, err)
	})
	return r
}

// settled waits for the end of the turn of a receipt.
func (c *chat) settled(id events.ReceiptID) events.TurnView {
	c.t.Helper()
	r := c.until(id, events.StateSettled)
	v, err := c.gateway.Turn(c.t.Context(), r.Turn)
	if err != nil {
		c.t.Fatalf("read turn: %v", err)
	}
	return v
}

func (c *chat) ask(text string) events.TurnView {
	c.t.Helper()
	return c.settled(c.say(text).ID)
}

func TestASessionRunsCommands(t *testing.T) {
	t.Parallel()
	c := startChat(t)
	for _, m := range []struct {
		text, reply string
		outcome     events.Outcome
		err         string
	}{
		{"echo hello", "hello", events.OutcomeCompleted, ""},
		{"echo $((6*7))", "42", events.OutcomeCompleted, ""},
		{"echo out; echo err >&2; exit 7", "out\nerr", events.OutcomeFailed, "exit status 7"},
		{"kill -KILL $$", "", events.OutcomeAborted, "killed by SIGKILL"},
		{"echo \"$KERYX_GATEWAY_SESSION_KEY $KERYX_PROFILE\"", "cli:local p1", events.OutcomeCompleted, ""},
		{"sleep 30 & echo started", "started", events.OutcomeCompleted, ""},
		{"cat", "", events.OutcomeCompleted, ""},
	} {
		began := time.Now()
		v := c.ask(m.text)
		if v.Reply != m.reply || v.Outcome != m.outcome || v.Error != m.err {
			t.Errorf("%q: reply %q, %s, error %q", m.text, v.Reply, v.Outcome, v.Error)
		}
		t.Logf("%q took %v", m.text, time.Since(began))
	}
	long := c.ask("head -c 3000000 /dev/zero | tr '\\0' x")
	if long.Outcome != events.OutcomeCompleted || len(long.Reply) < 200<<10 || !strings.Contains(long.Reply, "bytes cut") {
		t.Errorf("a long reply is %s, %d bytes", long.Outcome, len(long.Reply))
	}
}

func TestAnInterruptStopsTheCommand(t *testing.T) {
	t.Parallel()
	c := startChat(t)
	file := filepath.Join(t.TempDir(), "pid")
	r := c.say("echo $$ > " + file + "; echo begun; exec sleep 300")
	turn := c.until(r.ID, events.StateAccepted).Turn
	awaitFile(t, file)
	began := time.Now()
	ended, err := c.gateway.Interrupt(t.Context(), string(c.session), turn, "asked")
	if err != nil || ended.Outcome != events.OutcomeAborted {
		t.Errorf("interrupt: %+v, %v", ended, err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the interrupt took %v", took)
	}
	if v := c.settled(r.ID); v.Reply != "begun" || v.Outcome != events.OutcomeAborted {
		t.Errorf("turn is %+v", v)
	}
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command still runs: %v", err)
	}
}

func TestARestartOfTheBusHurtsNoCommand(t *testing.T) {
	t.Parallel()
	c := startChat(t)
	dir := t.TempDir()
	begun, back := filepath.Join(dir, "begun"), filepath.Join(dir, "back")
	r := c.say("echo one; touch " + begun + "; while [ ! -e " + back + " ]; do echo two; sleep 0.02; done; echo three")
	awaitFile(t, begun)
	c.stop()
	c.start()
	if err := os.WriteFile(back, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := c.settled(r.ID)
	if v.Outcome != events.OutcomeCompleted || !strings.HasPrefix(v.Reply, "one\ntwo\n") || !strings.HasSuffix(v.Reply, "two\nthree") {
		t.Errorf("turn is %+v", v)
	}
	if strings.Contains(v.Reply, "not kept") {
		t.Errorf("output was lost: %q", v.Reply)
	}
}

func TestTheExecutorsStopEndsTheTurn(t *testing.T) {
	t.Parallel()
	c := startChat(t)
	file := filepath.Join(t.TempDir(), "begun")
	r := c.say("touch " + file + "; sleep 300")
	awaitFile(t, file)
	c.stopExecutor()
	if v := c.settled(r.ID); v.Outcome != events.OutcomeAborted {
		t.Errorf("turn is %+v", v)
	}
	targets, err := c.gateway.Targets(t.Context())
	if err != nil || len(targets.Targets) != 0 {
		t.Errorf("targets are %+v, %v", targets, err)
	}
}

// awaitFile polls until a file is there.
func awaitFile(t *testing.T, file string) {
	t.Helper()
	poll(t, func() bool { _, err := os.Stat(file); return err == nil }, func() string { return file + " never came" })
}

// poll asks until done, or fails the test with what else says.
func poll(t *testing.T, done func() bool, otherwise func() string) {
	t.Helper()
	tick, late := time.NewTicker(2*time.Millisecond), time.NewTimer(30*time.Second)
	defer tick.Stop()
	defer late.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal(otherwise())
		}
	}
}
