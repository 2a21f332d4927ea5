package broker_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

func publicKey(t *testing.T) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func writePrincipals(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "principals.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readPrincipals(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "principals.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBrokenPrincipalsAreRefusedAndTheErrorSaysWhere(t *testing.T) {
	t.Parallel()
	key, other := publicKey(t), publicKey(t)
	entry := func(name, role, key string) string {
		return fmt.Sprintf("- profile: main\n  name: %s\n  role: %s\n  public_key: %s\n", name, role, key)
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":            {"principals:\n" + entry("a", "host", key) + "  rights: all\n", "[6:"},
		"unknown key at the top": {"principals: []\nadmins: []\n", "[2:"},
		"not YAML":               {"principals: [\n", "parse"},
		"no such role":           {"principals:\n" + entry("a", "root", key), "principals[0] (main/a)"},
		"malformed name":         {"principals:\n" + entry("A.b", "host", key), "principals[0]"},
		"name of the authority":  {"principals:\n" + entry("keryx-authority", "host", key), "reserved"},
		"name of the operator":   {"principals:\n" + entry("operator", "operator", key), "reserved"},
		"no key of a user":       {"principals:\n" + entry("a", "host", "SUAAA"), "NKey"},
		"name twice":             {"principals:\n" + entry("a", "host", key) + entry("a", "executor", other), "principals[1]"},
		"key twice":              {"principals:\n" + entry("a", "host", key) + entry("b", "host", key), "principals[1]"},
		"default host malformed": {"principals: []\ndefault_hosts: {main: ['*']}\n", "default_hosts"},
		"empty file":             {"", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writePrincipals(t, dir, c.text)
			b, err := broker.Start(t.Context(), broker.Config{Dir: dir})
			if err == nil {
				_ = b.Stop(t.Context())
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not name %q", err, c.want)
			}
			if err := broker.AddPrincipal(dir, events.Principal{Profile: "main", Name: "x", Role: events.RoleHost}, publicKey(t)); err == nil {
				t.Error("a principal was added to a file that cannot be used")
			}
			if got := readPrincipals(t, dir); got != c.text {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
}

func TestAddedPrincipalIsLetInByARunningBus(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	out := filepath.Join(t.TempDir(), "shell.creds")
	p := events.Principal{Profile: "main", Name: "shell", Role: events.RoleHost}
	if err := broker.CreateUser(b.Dir(), p, out); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watch sees the new principal", func() bool {
		got, ok := b.Registry().Lookup("main", "shell")
		return ok && got == p
	})
	creds, err := client.ReadCredentials(out)
	if err != nil {
		t.Fatal(err)
	}
	nc := bustest.Connect(t, b, creds, url(b))
	if err := nc.Flush(); err != nil {
		t.Errorf("a principal just added cannot talk: %v", err)
	}
}

func TestUserOfATakenNameLeavesNoCredentialsBehind(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "f")
	p := events.Principal{Profile: "main", Name: "shell", Role: events.RoleHost}
	if err := broker.AddPrincipal(dir, p, publicKey(t)); err != nil {
		t.Fatal(err)
	}
	p.Role = events.RoleOperator
	var taken *broker.TakenError
	if err := broker.CreateUser(dir, p, out); !errors.As(err, &taken) {
		t.Errorf("got %v, want a TakenError", err)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("credentials of a refused user: %v", err)
	}
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Name = "second"
	if err := broker.CreateUser(dir, p, out); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an existing file: %v, want fs.ErrExist", err)
	}
	if strings.Contains(readPrincipals(t, dir), "second") {
		t.Error("a user whose credentials could not be written was added")
	}
}

func TestRemovedPrincipalIsCutAndStaysOut(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	gone := bustest.Principal(t, b, "main", "gone", events.RoleHost)
	stays := bustest.Principal(t, b, "main", "stays", events.RoleHost)
	cut, kept := make(chan struct{}), make(chan struct{}, 1)
	nc := bustest.Connect(t, b, gone, url(b), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(cut) }))
	other := bustest.Connect(t, b, stays, url(b), nats.DisconnectErrHandler(func(*nats.Conn, error) { kept <- struct{}{} }))
	if err := broker.RemovePrincipal(b.Dir(), "main", "gone"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the removed principal is cut", func() bool {
		select {
		case <-cut:
			return true
		default:
			return false
		}
	})
	if !nc.IsClosed() {
		t.Error("the connection is still open")
	}
	pair, err := nkeys.FromSeed(gone.Seed)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pair.PublicKey()
	if again, err := nats.Connect(b.URL(), nats.Nkey(public, pair.Sign)); !errors.Is(err, nats.ErrAuthorization) {
		again.Close()
		t.Errorf("connecting again: %v, want an authorization error", err)
	}
	if err := other.Flush(); err != nil || len(kept) != 0 {
		t.Errorf("the other principal was disturbed: %v", err)
	}
	if err := broker.RemovePrincipal(b.Dir(), "main", "gone"); !errors.Is(err, broker.ErrNoPrincipal) {
		t.Errorf("removing twice: %v, want ErrNoPrincipal", err)
	}
}

func TestPrincipalOfANewRoleIsCutToComeBackWithItsNewRights(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	creds := bustest.Principal(t, b, "main", "p", events.RoleHost)
	back := make(chan struct{}, 1)
	nc := bustest.Connect(t, b, creds, nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }),
		nats.ReconnectWait(1), nats.MaxReconnects(-1))
	writePrincipals(t, b.Dir(), strings.ReplaceAll(readPrincipals(t, b.Dir()), "role: host", "role: executor"))
	<-back
	got := listen(t, b, "kx.out.main.p.s.x")
	if err := errors.Join(nc.Publish("kx.out.main.p.s.x", nil), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	if subjects := got(); len(subjects) != 1 {
		t.Errorf("as executor it published %v", subjects)
	}
}

func TestBrokenEditKeepsTheLastGoodPrincipals(t *testing.T) {
	t.Parallel()
	log := &lines{}
	b := bustest.Broker(t, log.option)
	creds := bustest.Principal(t, b, "main", "shell", events.RoleHost)
	nc := bustest.Connect(t, b, creds, nats.NoReconnect())
	for i, text := range []string{"principals: [", ""} {
		writePrincipals(t, b.Dir(), text)
		eventually(t, "the broken file is reported", func() bool { return log.count("last good") > i })
	}
	if err := os.Remove(filepath.Join(b.Dir(), "principals.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing file is reported", func() bool { return log.count("last good") > 2 })
	if _, ok := b.Registry().Lookup("main", "shell"); !ok {
		t.Error("the principal is gone")
	}
	if err := nc.Flush(); err != nil {
		t.Errorf("the principal was cut: %v", err)
	}
}

func TestEditsKeepCommentsAndOtherSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := "# who may talk\ndefault_hosts:\n  main: [shell]\nprincipals:\n# the agent\n- profile: main\n  name: shell # old\n" +
		"  role: host\n  public_key: " + publicKey(t) + "\n"
	writePrincipals(t, dir, before)
	add := events.Principal{Profile: "main", Name: "cli", Role: events.RoleGateway}
	if err := broker.AddPrincipal(dir, add, publicKey(t)); err != nil {
		t.Fatal(err)
	}
	after := readPrincipals(t, dir)
	for _, want := range []string{"# who may talk", "main: [shell]", "# the agent", "# old", "name: cli", "added:"} {
		if !strings.Contains(after, want) {
			t.Errorf("%q is not in the file:\n%s", want, after)
		}
	}
	if err := broker.RemovePrincipal(dir, "main", "cli"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, readPrincipals(t, dir)); diff != "" {
		t.Errorf("adding and removing changed the file (-before +after):\n%s", diff)
	}
}

func TestEditorsAtTheSameTimeLoseNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const editors = 12
	keys := make([]string, editors)
	for i := range keys {
		keys[i] = publicKey(t)
	}
	var wg sync.WaitGroup
	for i, key := range keys {
		wg.Go(func() {
			name := events.PrincipalName(fmt.Sprintf("p%d", i))
			if err := broker.AddPrincipal(dir, events.Principal{Profile: "main", Name: name, Role: events.RoleHost}, key); err != nil {
				t.Errorf("add %s: %v", name, err)
			}
		})
	}
	wg.Wait()
	b := bustest.Broker(t, bustest.Dir(dir))
	if got := len(b.Registry().DefaultHosts("main")); got != editors {
		t.Errorf("%d principals of %d are there", got, editors)
	}
	if err := broker.RemovePrincipal(dir, "main", "p0"); err != nil {
		t.Error(err)
	}
}

func TestLastPrincipalCanBeRemoved(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	bustest.Principal(t, b, "main", "only", events.RoleHost)
	if err := broker.RemovePrincipal(b.Dir(), "main", "only"); err != nil {
		t.Fatal(err)
	}
	if err := b.Reload(); err != nil {
		t.Errorf("the file left behind cannot be used: %v", err)
	}
	bustest.Principal(t, b, "main", "next", events.RoleHost)
}
