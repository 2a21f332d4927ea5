package broker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

func dial(t *testing.T, dir string) *broker.OperatorGrant {
	t.Helper()
	g, err := broker.DialOperator(t.Context(), dir, "main")
	if err != nil {
		t.Fatalf("dial operator: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close grant: %v", err)
		}
	})
	return g
}

func closedSoon(t *testing.T, what string, nc *nats.Conn) {
	t.Helper()
	eventually(t, what, nc.IsClosed)
}

func TestOperatorActsForAsLongAsItHoldsItsGrant(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	g := dial(t, b.Dir())
	want := events.Principal{Profile: "main", Name: "operator", Role: events.RoleOperator}
	if g.Credentials.Principal != want || g.URL != b.URL() {
		t.Errorf("granted %+v at %s", g.Credentials.Principal, g.URL)
	}
	if got, ok := b.Registry().Lookup("main", "operator"); !ok || got != want {
		t.Errorf("the registry knows the operator as %+v, %v", got, ok)
	}
	nc := bustest.Connect(t, b, g.Credentials, url(b), nats.NoReconnect())
	second := dial(t, b.Dir())
	other := bustest.Connect(t, b, second.Credentials, url(b), nats.NoReconnect())
	heard := listen(t, b, "kx.cmd.main.operator.>")
	if err := errors.Join(nc.Publish("kx.cmd.main.operator.session.list", nil), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	if got := heard(); len(got) != 1 {
		t.Errorf("heard %v, want the operator's command", got)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	closedSoon(t, "the connection is cut when its grant ends", nc)
	if err := other.Flush(); err != nil {
		t.Errorf("the other operator was cut too: %v", err)
	}
	refusedKey(t, b, g.Credentials.Seed)
}

func refusedKey(t *testing.T, b *broker.Broker, seed []byte) {
	t.Helper()
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	if nc, err := nats.Connect(b.URL(), nats.Nkey(public, pair.Sign)); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("connecting with the key: %v, want an authorization error", err)
	}
}

func TestGrantEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), dialEnv+"="+b.Dir())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "granted: operator") {
		t.Errorf("the other process said %q, %v", out, err)
	}
}

func TestStopEndsOpenGrants(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	g := dial(t, b.Dir())
	nc := bustest.Connect(t, b, g.Credentials, url(b), nats.NoReconnect())
	began := time.Now()
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stop with an open grant took %v", took)
	}
	closedSoon(t, "the operator's connection ends with the bus", nc)
	if _, err := broker.DialOperator(t.Context(), b.Dir(), "main"); !errors.Is(err, broker.ErrNotRunning) {
		t.Errorf("dial after the stop: %v, want ErrNotRunning", err)
	}
}

func TestOperatorOfADirectoryWithoutABus(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"empty": t.TempDir(), "missing": filepath.Join(t.TempDir(), "none"),
		"deep and missing": filepath.Join(t.TempDir(), strings.Repeat("d", 120)),
	} {
		if _, err := broker.DialOperator(t.Context(), dir, "main"); !errors.Is(err, broker.ErrNotRunning) {
			t.Errorf("%s: %v, want ErrNotRunning", name, err)
		}
	}
}

func TestOperatorIsFoundHoweverDeepTheDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 30), strings.Repeat("er", 60))
	b := bustest.Broker(t, bustest.Dir(dir))
	info, err := os.Lstat(filepath.Join(dir, "run", "operator.sock"))
	if err != nil || info.Mode().Type() != os.ModeSocket || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is not where it belongs: %v, %v", info, err)
	}
	nc := bustest.Connect(t, b, dial(t, dir).Credentials)
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "run", "operator.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket was left behind: %v", err)
	}
}

func TestOperatorSocketRefusesNonsense(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	if _, err := broker.DialOperator(t.Context(), b.Dir(), "No Profile"); !errors.Is(err, events.ErrOf(events.CodeInvalid)) {
		t.Errorf("malformed profile: %v, want invalid", err)
	}
	for name, text := range map[string]string{"no JSON": "hello\n", "too large": `{"profile":"` + strings.Repeat("x", 1<<16)} {
		c, err := net.Dial("unix", filepath.Join(b.Dir(), "run", "operator.sock"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text) // the bus may hang up before all is written
		answer, _ := io.ReadAll(c)
		if strings.Contains(string(answer), `"seed"`) {
			t.Errorf("%s: answered with a seed", name)
		}
		_ = c.Close()
	}
	dial(t, b.Dir())
}

func TestDialOperatorEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	mute, err := net.Listen("unix", filepath.Join(dir, "run", "operator.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := broker.DialOperator(ctx, dir, "main"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("at a socket that says nothing: %v, want the deadline", err)
	}
}

// TestOperatorSocketKnowsItsOwner runs this test binary as another user where it may;
// as an ordinary user it can only show that the owner is let in.
func TestOperatorSocketKnowsItsOwner(t *testing.T) {
	t.Parallel()
	// Below /tmp itself, since another user cannot enter the directory of a test.
	dir, err := os.MkdirTemp("", "keryx-operator-") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := bustest.Broker(t, bustest.Dir(dir))
	dial(t, dir)
	if os.Geteuid() != 0 {
		return
	}
	for path, mode := range map[string]os.FileMode{
		dir: 0o755, filepath.Join(dir, "run"): 0o755,
		filepath.Join(dir, "run", "operator.sock"): 0o666,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	self := filepath.Join(dir, "self")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, text, 0o755); err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Dir = "/"
	cmd.Env = []string{dialEnv + "=" + b.Dir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "forbidden: user 65534 is not the owner") {
		t.Errorf("another user got %q, %v; want forbidden", out, err)
	}
}
