package doctor_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/bustest"
	"keryx/internal/doctor"
	"keryx/internal/node"
)

// closed makes a store with a session and closes it.
func closed(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bus") // of mode 0700
	n, err := node.Start(t.Context(), node.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c, err := n.Connect(t.Context(), events.Principal{Profile: "default", Name: "gw", Role: events.RoleGateway})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Register(t.Context(), events.Names{GatewaySessionKey: "k:1"}, events.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), events.Submit{To: string(r.Session), Body: events.Body{Text: "hello"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := n.Stop(ctx); err != nil {
		t.Error(err)
	}
	return dir
}

const logDir = "store/jetstream/$G/streams/KX_LOG/"

// ward is a bus directory with something wrong.
type ward struct {
	t   *testing.T
	dir string
}

func (w ward) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w ward) change(name string, f func([]byte) []byte) {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name, string(f(b)))
}

// publish puts a message on the log past the authority.
func (w ward) publish(subject, text string) {
	w.t.Helper()
	b := bustest.Broker(w.t, bustest.Dir(w.dir))
	nc := bustest.System(w.t, b)
	if _, err := nc.Request(subject, []byte(text), 5*time.Second); err != nil {
		w.t.Fatal(err)
	}
	nc.Close()
	if err := b.Stop(context.WithoutCancel(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
}

func TestTheDoctorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		harm     func(w ward)
		check    string
		severity doctor.Severity
		says     string
	}{
		{"nothing", func(ward) {}, "", doctor.Fine, ""},
		{"a flipped byte", func(w ward) {
			w.change(logDir+"msgs/1.blk", func(b []byte) []byte { b[bytes.Index(b, []byte("hello"))] ^= 1; return b })
		}, "damage", doctor.Fault, "1.blk"},
		{"a shortened log", func(w ward) {
			w.change(logDir+"msgs/1.blk", func(b []byte) []byte { return b[:len(b)-1] })
		}, "high-water", doctor.Fault, "once held"},
		{"no index", func(w ward) {
			if err := os.Remove(filepath.Join(w.dir, logDir+"msgs/index.db")); err != nil {
				w.t.Fatal(err)
			}
		}, "index", doctor.Note, "no index"},
		{"a newer format", func(w ward) { w.write("format.json", `{"format":9}`) }, "format", doctor.Fault, "format 9"},
		{"a damaged mark", func(w ward) { w.write("high-water.json", `{"str`) }, "high-water", doctor.Fault, "high-water.json"},
		{"principals that others can read", func(w ward) {
			w.write("principals.yaml", "principals: []\n")
			if err := os.Chmod(filepath.Join(w.dir, "principals.yaml"), 0o644); err != nil { //nolint:gosec // that is the fault
				w.t.Fatal(err)
			}
		}, "modes", doctor.Warning, "0644"},
		{"run files of a killed bus", func(w ward) { w.write("run/pid", "1\n") }, "leftovers", doctor.Note, "run/pid"},
		{"a consumer", func(w ward) { w.write(logDir+"obs/x/meta.inf", "{}") }, "consumers", doctor.Warning, "1 consumers"},
		{"an event that cannot be decoded", func(w ward) {
			w.publish("kx.log.default.01JSESS10N0000000000000000", "no event")
		}, "events", doctor.Warning, "1 events"},
		{"a name of no session", func(w ward) {
			w.publish("kx.id.default.gateway_session_key.abc", `{"session":"01JSESS10N0000000000000000"}`)
		}, "names", doctor.Warning, "01JSESS10N0000000000000000"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := closed(t)
			tc.harm(ward{t, dir})
			r, release, err := doctor.Examine(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := release(); err != nil {
				t.Error(err)
			}
			if r.Worst() != tc.severity {
				t.Errorf("the worst is %s, want %s: %+v", r.Worst(), tc.severity, r.Findings)
			}
			for _, f := range r.Findings {
				if f.Check == tc.check && f.Severity == tc.severity && strings.Contains(f.What, tc.says) {
					return
				}
			}
			if tc.check != "" {
				t.Errorf("no %s of %s says %q: %+v", tc.severity, tc.check, tc.says, r.Findings)
			}
		})
	}
}

func TestARepairTouchesNoFactAndADryRunNothing(t *testing.T) {
	t.Parallel()
	dir := closed(t)
	w := ward{t, dir}
	w.write("run/pid", "1\n")
	block, err := os.ReadFile(filepath.Join(dir, logDir+"msgs/1.blk"))
	if err != nil {
		t.Fatal(err)
	}
	r, release, err := doctor.Examine(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		done, err := r.Repair(dryRun)
		if err != nil || len(done) < 2 {
			t.Fatalf("repaired are %v, %v", done, err)
		}
		_, perr := os.Stat(filepath.Join(dir, "run/pid"))
		_, ierr := os.Stat(filepath.Join(dir, logDir+"msgs/index.db"))
		if os.IsNotExist(perr) == dryRun || os.IsNotExist(ierr) == dryRun {
			t.Errorf("dry run %v: run file %v, index %v", dryRun, perr, ierr)
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, logDir+"msgs/1.blk")); err != nil || !bytes.Equal(now, block) {
		t.Errorf("the block is another one: %v", err)
	}
	c, done, err := node.OpenOffline(t.Context(), dir, "default", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Show(t.Context(), "k:1"); err != nil {
		t.Errorf("the repaired store does not serve: %v", err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}
