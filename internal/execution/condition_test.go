package execution_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/execution"
	"keryx/internal/privdir"
	"keryx/internal/process"
	"keryx/internal/targets"
)

// registered waits for a registration that is as it should be.
func (b *memoryBus) registered(what string, ok func(events.TargetRegistered) bool) events.TargetRegistered {
	b.t.Helper()
	var got events.TargetRegistered
	b.until(what, func() bool {
		if b.target == nil || !ok(*b.target) {
			return false
		}
		got = *b.target
		return true
	})
	return got
}

func anyRegistration(events.TargetRegistered) bool { return true }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// privateBase is a directory that only this user can change.
func privateBase(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kx") //nolint:usetesting // t.TempDir is too long for a socket
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	dir, err = filepath.EvalSymlinks(dir)
	must(t, err)
	return dir
}

func TestARuntimeDirectoryThatIsNotPrivateIsRefusedWithACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(dir string) error
		code  events.Code
	}{
		"group-readable": {func(dir string) error { return os.Chmod(dir, 0o750) }, events.CodeRuntimeDirExposed},
		"replaced by a symlink": {func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
		}, events.CodeRuntimeDirSymlink},
		"gone": {os.Remove, events.CodeRuntimeDirMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(privateBase(t), "run")
			must(t, os.Mkdir(dir, 0o700))
			b := newBus(t)
			serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", RuntimeDir: dir}})
			o := b.start(sh(`printf %s "$XDG_RUNTIME_DIR"`))
			if end := b.exited(o); end.ExitCode != 0 || string(b.kept("stdout")) != dir {
				t.Errorf("exit %+v, the command was told %q", end, b.kept("stdout"))
			}
			must(t, c.spoil(dir))
			began := filepath.Join(t.TempDir(), "began")
			if r := b.refused(b.start(sh("touch " + began))); r.Code != c.code {
				t.Errorf("at a launch: %+v, want %s", r, c.code)
			}
			if _, err := os.Stat(began); err == nil {
				t.Error("the command ran")
			}
			b.until("the report", func() bool {
				r, ok := factOf(b, func(r events.ReportTarget) bool { return r.Fault != nil })
				return ok && r.Fault.Code == c.code
			})
		})
	}
}

func TestARuntimeDirectoryOfAnotherUserIsRefusedAtTheRegistration(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{
		Target: events.TargetSpec{Name: "local", RuntimeDir: filepath.Join(privateBase(t), "run")},
		// As for a target of another user, which needs root to run.
		CheckDir: func(path string, o privdir.Owner) error {
			must(t, os.MkdirAll(path, 0o700))
			o.UID += 12345
			return privdir.Check(path, o)
		},
	})
	got := b.registered("a registration", anyRegistration)
	want := events.CodeRuntimeDirForeign
	if os.Geteuid() != 0 {
		want = events.CodeRuntimeDirExposed // the directories above are this user's, too
	}
	if got.Fault == nil || got.Fault.Code != want {
		t.Errorf("fault %v", got.Fault)
	}
}

func TestARuntimeDirectoryThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	err := execution.Run(t.Context(), newBus(t), execution.Config{
		Target: events.TargetSpec{Name: "local", RuntimeDir: "/" + strings.Repeat("a", 100)},
	})
	if events.CodeOf(err) != events.CodeRuntimeDirTooLong {
		t.Errorf("got %v", err)
	}
}

func TestWithoutPosixUsersARuntimeDirectoryIsRefusedAndTheRestRuns(t *testing.T) {
	t.Parallel()
	unsupported := func(path string, _ privdir.Owner) error { return privdir.Unsupported(path) }
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", RuntimeDir: "/run/x"}, CheckDir: unsupported})
	if got := b.registered("a registration", anyRegistration); got.Fault == nil || got.Fault.Code != events.CodeRuntimeDirUnsupported {
		t.Errorf("fault %v", got.Fault)
	}
	plain := newBus(t)
	serve(t, plain, execution.Config{Target: events.TargetSpec{Name: "local"}, CheckDir: unsupported})
	if end := plain.exited(plain.start(sh("true"))); end.ExitCode != 0 {
		t.Errorf("plain execution ended %+v", end)
	}
}

func TestValidatePassesByExit0Alone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, says string }{
		"exit 0":                  {"echo fine; exit 0", ""},
		"another exit":            {"echo first; echo no disk >&2; exit 3", "validate exited 3: no disk"},
		"nothing said":            {"exit 1", "validate exited 1, saying nothing"},
		"a signal":                {"kill -9 $$", "validate was ended by SIGKILL, saying nothing"},
		"out of time":             {"echo waiting; sleep 60 & wait", "validate did not end within 300ms: waiting"},
		"exit 0 when out of time": {"trap 'exit 0' TERM; sleep 60 & wait", "validate did not end within 300ms, saying nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t)
			serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Validate: &events.TargetCheck{
				Command: []string{"/bin/sh", "-c", c.script}, TimeoutMS: 300,
			}}})
			got := b.registered("a registration", anyRegistration)
			if c.says == "" {
				if got.Fault != nil {
					t.Errorf("fault %v", got.Fault)
				}
				return
			}
			if got.Fault == nil || got.Fault.Code != events.CodeValidateFailed || got.Fault.Message != c.says {
				t.Errorf("fault %v, want %q", got.Fault, c.says)
			}
			if r := b.refused(b.start(sh("true"))); r.Code != events.CodeValidateFailed || r.Message != c.says {
				t.Errorf("a launch was refused with %+v", r)
			}
		})
	}
}

func TestAStopEndsTheValidateCommandOfALaunch(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "slow")
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Validate: &events.TargetCheck{
		Command: []string{"/bin/sh", "-c", "[ ! -e " + gate + " ] || { touch " + gate + ".in; sleep 60; }"}, TimeoutMS: 50_000,
	}}})
	b.registered("a registration", anyRegistration)
	must(t, os.WriteFile(gate, nil, 0o600))
	o := b.start(sh("true"))
	deadline := time.Now().Add(10 * time.Second)
	for !exists(gate + ".in") {
		if time.Now().After(deadline) {
			t.Fatal("validate did not run")
		}
		<-time.After(10 * time.Millisecond)
	}
	b.tell(events.ExecStop, events.StopOrder{Session: o.Session, Exec: o.Request.Exec})
	if r := b.refused(o); !strings.Contains(r.Message, "stopped before") {
		t.Errorf("refused with %+v", r)
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func TestLimitsAreEnforcedOrSaidNotToBe(t *testing.T) {
	t.Parallel()
	g, err := process.OpenGroups("test-"+events.NewID(), "one")
	enforced := err == nil && g.Enforces("pids")
	if err == nil {
		must(t, g.Close())
	}
	for _, bestEffort := range []bool{false, true} {
		b := newBus(t)
		serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Limits: &events.TargetLimits{PIDs: 64, BestEffort: bestEffort}}})
		got := b.registered("a registration", anyRegistration)
		switch {
		case enforced:
			if got.Fault != nil || len(got.LimitsUnenforced) > 0 {
				t.Errorf("where limits are enforced: %+v", got.TargetCondition)
			}
		case bestEffort:
			if got.Fault != nil || !slices.Equal(got.LimitsUnenforced, []string{"pids"}) {
				t.Errorf("best effort: %+v", got.TargetCondition)
			}
			if end := b.exited(b.start(sh("true"))); end.ExitCode != 0 {
				t.Errorf("best effort ended %+v", end)
			}
		default:
			if got.Fault == nil || got.Fault.Code != events.CodeLimitsUnenforceable {
				t.Errorf("where limits are not enforced: %+v", got.TargetCondition)
			}
			if r := b.refused(b.start(sh("true"))); r.Code != events.CodeLimitsUnenforceable {
				t.Errorf("refused with %+v", r)
			}
		}
	}
}

func TestAuthoritativeVariablesComeFromTheTargetAlone(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	home := t.TempDir()
	must(t, os.WriteFile(filepath.Join(home, ".profile"), []byte("export PROXY=login GONE=login\n"), 0o600))
	serve(t, b, execution.Config{
		Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + home, "LC_PROXY=own"},
		Target: events.TargetSpec{
			Name: "local", AuthoritativeEnv: []string{"PROXY", "GONE", "LC_PROXY"}, EnvSet: map[string]string{"PROXY": "target"},
		},
	})
	for name, change := range map[string]func(*events.ExecSpec){
		"layered": func(*events.ExecSpec) {}, "login": func(s *events.ExecSpec) { s.Login = true },
		"exact": func(s *events.ExecSpec) { s.EnvMode = events.EnvExact },
	} {
		spec := sh(`echo "$PROXY ${GONE-none} ${LC_PROXY-none}" > ` + home + "/" + name)
		spec.EnvSet = map[string]string{"PROXY": "call", "GONE": "call"}
		change(&spec)
		b.exited(b.start(spec))
		got, err := os.ReadFile(filepath.Join(home, name))
		if err != nil || string(got) != "target none none\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestPerSessionTargetsGiveEachSessionDirectoriesOfItsOwn(t *testing.T) {
	t.Parallel()
	base := privateBase(t)
	run := filepath.Join(base, "run")
	must(t, os.Mkdir(run, 0o700))
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Cwd: base, RuntimeDir: run, PerSession: true}})
	for range 2 {
		o := b.order(sh(`pwd; printf %s "$XDG_RUNTIME_DIR"`))
		b.mu.Lock()
		b.chunks = nil
		b.mu.Unlock()
		b.tell(events.ExecStart, o)
		b.exited(o)
		want := fmt.Sprintf("%s/%s\n%s/%s", base, o.Session, run, o.Session)
		if got := string(b.kept("stdout")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAChangedDeclarationIsANewGenerationAndRunningCommandsKeepTheirs(t *testing.T) {
	t.Parallel()
	changes := make(chan []targets.Declaration)
	declared := func(gen string) []targets.Declaration {
		return []targets.Declaration{{Spec: events.TargetSpec{Name: "local", EnvSet: map[string]string{"GEN": gen}}}}
	}
	dir := t.TempDir()
	b := newBus(t)
	serve(t, b, execution.Config{Targets: declared("1"), Changes: changes})
	old := b.start(sh("touch " + dir + "/in; while [ ! -e " + dir + "/go ]; do sleep 0.02; done; echo $GEN > " + dir + "/old"))
	b.started(old)
	stale := b.order(sh("true"))
	changes <- declared("2")
	second := b.registered("generation 2", func(r events.TargetRegistered) bool { return r.Generation == 2 })
	if first := old.Request.Selection; second.LeaseFence != first.LeaseFence {
		t.Errorf("fence %s, was %s", second.LeaseFence, first.LeaseFence)
	}
	b.tell(events.ExecStart, stale)
	if r := b.refused(stale); r.Code != events.CodeStaleSelection {
		t.Errorf("an old selection: %+v", r)
	}
	b.exited(b.start(sh("echo $GEN > " + dir + "/new")))
	must(t, os.WriteFile(dir+"/go", nil, 0o600))
	b.exited(old)
	for file, want := range map[string]string{"old": "1\n", "new": "2\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	broken := declared("2")
	broken[0].Broken = events.Errorf(events.CodeInvalid, "t.yaml:1:1: broken")
	changes <- broken
	r := await(b, "the report", func(r events.ReportTarget) bool { return r.ConfigFault != nil })
	if r.Generation != 2 {
		t.Errorf("a broken file made generation %d", r.Generation)
	}
}

func TestATargetThatIsNoLongerDeclaredIsGivenBackAfterItsLastCommand(t *testing.T) {
	t.Parallel()
	changes := make(chan []targets.Declaration)
	gate := filepath.Join(t.TempDir(), "go")
	b := newBus(t)
	serve(t, b, execution.Config{Targets: []targets.Declaration{{Spec: events.TargetSpec{Name: "local"}}}, Changes: changes})
	o := b.start(sh("while [ ! -e " + gate + " ]; do sleep 0.02; done"))
	b.started(o)
	changes <- nil
	b.until("the withdrawal", func() bool { return b.target == nil })
	if _, gone := factOf(b, func(events.ReleaseLease) bool { return true }); gone {
		t.Error("the lease was given back while a command ran")
	}
	must(t, os.WriteFile(gate, nil, 0o600))
	if end := b.exited(o); end.ExitCode != 0 {
		t.Errorf("the command ended %+v", end)
	}
	await(b, "the release of the lease", func(events.ReleaseLease) bool { return true })
}

func TestWhatValidateSaysHoldsNoSecret(t *testing.T) {
	t.Parallel()
	_, secrets := secretsOf(t, "hunter2-hunter2")
	b := newBus(t)
	serve(t, b, execution.Config{Secrets: secrets, Target: events.TargetSpec{Name: "local", Validate: &events.TargetCheck{
		Command: []string{"/bin/sh", "-c", "echo bad password hunter2-hunter2; exit 1"},
	}}})
	got := b.registered("a registration", anyRegistration)
	if got.Fault == nil || strings.Contains(got.Fault.Message, "hunter2") || !strings.Contains(got.Fault.Message, "bad password") {
		t.Errorf("fault %v", got.Fault)
	}
}
