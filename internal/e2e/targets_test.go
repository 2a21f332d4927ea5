package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keryx/events"
)

// withTargets starts a bus, an executor with a directory of target files, and a host that
// stays, and has a first turn in each of the sessions cli:local and cli:two.
func withTargets(t *testing.T, files map[string]string) (*bench, string) {
	t.Helper()
	b := newBench(t)
	dir := filepath.Join(b.dir, "targets")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b.target(dir, "local.yaml", "name: local\n")
	for name, text := range files {
		b.target(dir, name, text)
	}
	b.serving()
	b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"), "--targets", dir)
	for _, key := range []string{"cli:local", "cli:two"} {
		first := b.start("echo first\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio", "--key", key)
		if code := first.exit(30 * time.Second); code != 0 {
			t.Fatalf("the first turn of %s exited %d", key, code)
		}
	}
	return b, dir
}

// target writes a target file as an editor does: a new one in the place of the old one.
func (b *bench) target(dir, name, text string) {
	b.t.Helper()
	tmp := filepath.Join(b.dir, name+".tmp")
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// targetLine is a line of `bus targets --json`.
type targetLine struct {
	events.TargetRegistered
	State events.TargetState `json:"state"`
}

// targetNow returns a target as it is listed; ok is false if it is not.
func (b *bench) targetNow(name events.TargetName) (found targetLine, ok bool) {
	b.t.Helper()
	dec := json.NewDecoder(strings.NewReader(b.run("bus", "targets", "--json", "--dir", b.store())))
	for dec.More() {
		var l targetLine
		if err := dec.Decode(&l); err != nil {
			b.t.Fatal(err)
		}
		if l.Spec.Name == name {
			found, ok = l, true
		}
	}
	return found, ok
}

// in runs a shell command in a target for a session and returns its exit code and output.
func (b *bench) in(key, target, script string) (code int, out, errOut string) {
	b.t.Helper()
	p := b.start("", "bus", "exec", key, "--target", target, "--dir", b.store(), "--", "sh", "-c", script)
	code = p.exit(30 * time.Second)
	return code, p.stdout.String(), p.stderr.String()
}

func TestTargetFilesAreFollowedWhileTheExecutorRuns(t *testing.T) {
	t.Parallel()
	work := func(gen int) string { return fmt.Sprintf("name: work\nenv_set: {GEN: \"%d\"}\n", gen) }
	b, dir := withTargets(t, map[string]string{"work.yaml": work(1), "play.yaml": "name: play\n"})
	if code, out, _ := b.in("cli:local", "work", "echo $GEN"); code != 0 || out != "1\n" {
		t.Errorf("at first: %d, %q", code, out)
	}
	first, _ := b.targetNow("work")
	gate := filepath.Join(b.dir, "go")
	old := b.start("", "bus", "exec", "cli:local", "--target", "work", "--dir", b.store(), "--",
		"sh", "-c", "echo in; while [ ! -e "+gate+" ]; do sleep 0.05; done; echo $GEN")
	b.await("the command", 20*time.Second, func() bool { return old.stdout.String() == "in\n" })

	b.target(dir, "work.yaml", work(2))
	b.await("the next generation", 20*time.Second, func() bool {
		now, ok := b.targetNow("work")
		return ok && now.Generation == first.Generation+1
	})
	if code, out, _ := b.in("cli:local", "work", "echo $GEN"); code != 0 || out != "2\n" {
		t.Errorf("after the change: %d, %q", code, out)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := old.exit(20 * time.Second); code != 0 || old.stdout.String() != "in\n1\n" {
		t.Errorf("what ran before: %d, %q", code, old.stdout)
	}

	b.target(dir, "work.yaml", "name: work\nenvset: {}\n")
	b.await("the broken file to show", 20*time.Second, func() bool {
		now, _ := b.targetNow("work")
		return now.ConfigFault != nil && strings.Contains(now.ConfigFault.Message, "work.yaml:2:1: unknown key")
	})
	if code, out, _ := b.in("cli:local", "work", "echo $GEN"); code != 0 || out != "2\n" {
		t.Errorf("with a broken file: %d, %q", code, out)
	}
	b.target(dir, "work.yaml", work(2))
	b.await("the mended file to show", 20*time.Second, func() bool {
		now, _ := b.targetNow("work")
		return now.ConfigFault == nil && now.Generation == first.Generation+1
	})

	if err := os.Remove(filepath.Join(dir, "play.yaml")); err != nil {
		t.Fatal(err)
	}
	b.await("the removed target to go", 20*time.Second, func() bool { _, ok := b.targetNow("play"); return !ok })
	if code, _, errOut := b.in("cli:local", "play", "true"); code == 0 || !strings.Contains(errOut, "unknown_target") {
		t.Errorf("a removed target: %d, %q", code, errOut)
	}
}

func TestATargetIsUsedOnlyWhileItsValidateCommandPasses(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "flag")
	b, _ := withTargets(t, map[string]string{
		"work.yaml": "name: work\nvalidate: {command: [sh, -c, 'test -e " + flag + " || { echo no flag; exit 4; }']}\n",
	})
	refused := func(when string) {
		t.Helper()
		if code, _, errOut := b.in("cli:local", "work", "true"); code == 0 ||
			!strings.Contains(errOut, "validate_failed") || !strings.Contains(errOut, "validate exited 4: no flag") {
			t.Errorf("%s: %d, %q", when, code, errOut)
		}
	}
	refused("without the flag")
	if now, _ := b.targetNow("work"); now.Fault == nil || now.Fault.Code != events.CodeValidateFailed {
		t.Errorf("listed as %+v", now.TargetCondition)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.await("the target to be ready", 45*time.Second, func() bool { now, _ := b.targetNow("work"); return now.Fault == nil })
	if code, _, errOut := b.in("cli:local", "work", "true"); code != 0 {
		t.Errorf("with the flag: %d, %q", code, errOut)
	}
	if err := os.Remove(flag); err != nil {
		t.Fatal(err)
	}
	refused("right before a launch")
}

func TestAnExclusiveTargetIsOneSessionsUntilItsEpochEndsOrItIsDetached(t *testing.T) {
	t.Parallel()
	b, _ := withTargets(t, map[string]string{"device.yaml": "name: device\nexclusive: true\n"})
	holder := func() events.SessionID {
		now, _ := b.targetNow("device")
		if now.State.Holder == nil {
			return ""
		}
		return now.State.Holder.Session
	}
	takes := func(key string) {
		t.Helper()
		if code, _, errOut := b.in(key, "device", "true"); code != 0 {
			t.Errorf("%s was refused: %q", key, errOut)
		}
	}
	refused := func(key string) {
		t.Helper()
		if code, _, errOut := b.in(key, "device", "true"); code == 0 || !strings.Contains(errOut, "target_claimed") {
			t.Errorf("%s: %d, %q", key, code, errOut)
		}
	}
	takes("cli:local")
	takes("cli:local")
	first := holder()
	refused("cli:two")
	b.run("bus", "session", "reset", "cli:local", "--reason", "over", "--dir", b.store())
	b.await("the end of the claim", 20*time.Second, func() bool { return holder() == "" })
	takes("cli:two")
	if second := holder(); second == "" || second == first {
		t.Errorf("held by %q, before by %q", second, first)
	}
	refused("cli:local")
	b.run("bus", "targets", "detach", "device", "--dir", b.store())
	b.await("the end of the claim", 20*time.Second, func() bool { return holder() == "" })
	takes("cli:local")
}

func TestClaimsOfManySessionsAtOnceGoToOne(t *testing.T) {
	t.Parallel()
	b, _ := withTargets(t, map[string]string{"device.yaml": "name: device\nexclusive: true\n"})
	var all []*process
	for i := range 6 {
		key := []string{"cli:local", "cli:two"}[i%2]
		all = append(all, b.start("", "bus", "exec", key, "--target", "device", "--dir", b.store(), "--", "sh", "-c", "sleep 1; echo "+key))
	}
	won := map[string]bool{}
	for _, p := range all {
		if p.exit(40*time.Second) == 0 {
			won[strings.TrimSpace(p.stdout.String())] = true
		} else if !strings.Contains(p.stderr.String(), "target_claimed") {
			t.Errorf("refused otherwise: %q", p.stderr)
		}
	}
	if len(won) != 1 {
		t.Errorf("it went to %v", won)
	}
}
