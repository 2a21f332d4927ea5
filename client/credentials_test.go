package client_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/client"
	"keryx/events"
)

func TestCredentialsComeBackFromTheirFileWhichOnlyItsOwnerMayRead(t *testing.T) {
	t.Parallel()
	want := credentials(t, "gw", events.RoleGateway)
	dir := t.TempDir()
	path := filepath.Join(dir, "gw.yaml")
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode is %v, want 0600", info.Mode())
	}
	got, err := client.ReadCredentials(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v (%v), want the file alone", left, err)
	}
}

func TestCredentialsThatOthersMayUseAreNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gw.yaml")
	if err := credentials(t, "gw", events.RoleGateway).Write(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o604, 0o640, 0o620, 0o601, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := client.ReadCredentials(path); !errors.Is(err, client.ErrLoosePermissions) || !strings.Contains(err.Error(), path) {
			t.Errorf("mode %04o: got %v", mode, err)
		}
	}
}

func TestCredentialsNeverReplaceAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "gw.yaml")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := credentials(t, "gw", events.RoleGateway).Write(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if err := (client.Credentials{}).Write(filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("credentials of nobody were written")
	}
}

func TestAFileThatIsNoCredentialsIsRefusedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	seed := string(credentials(t, "gw", events.RoleGateway).Seed)
	good := "profile: default\nname: gw\nrole: gateway\nseed: " + seed + "\n"
	for name, body := range map[string]string{
		"empty":             "",
		"unknown field":     good + "host: x\n",
		"field twice":       good + "role: operator\n",
		"second document":   good + "---\nname: x\n",
		"not YAML":          "seed: " + seed + "\n\t: [",
		"no seed":           "profile: default\nname: gw\nrole: gateway\n",
		"an account's seed": strings.Replace(good, "seed: SU", "seed: SA", 1),
		"an unknown role":   strings.Replace(good, "role: gateway", "role: king", 1),
		"a profile of dots": strings.Replace(good, "profile: default", "profile: a.b", 1),
		"a list":            "- " + seed + "\n",
	} {
		path := filepath.Join(t.TempDir(), "creds.yaml")
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := client.ReadCredentials(path)
		if err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), seed[2:]) {
			t.Errorf("%s: the error quotes the seed: %v", name, err)
		}
	}
	if _, err := client.ReadCredentials(t.TempDir()); err == nil {
		t.Error("a directory was taken")
	}
}

func TestPrintedCredentialsShowNoSeed(t *testing.T) {
	t.Parallel()
	c := credentials(t, "gw", events.RoleGateway)
	cfg := client.Config{Credentials: c}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "credentials", c)
	bytes := strings.Trim(fmt.Sprintf("%d", c.Seed), "[]") // as %v prints them
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), log.String()} {
		if strings.Contains(s, string(c.Seed)) || strings.Contains(s, bytes) {
			t.Errorf("the seed shows in %s", s)
		}
		if !strings.Contains(s, "gw") {
			t.Errorf("the name does not show in %s", s)
		}
	}
}
