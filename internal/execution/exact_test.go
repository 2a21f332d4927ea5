package execution_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/execution"
)

// output1 runs a command and returns its stdout.
func (b *memoryBus) output1(t *testing.T, spec events.ExecSpec) (string, events.ExecExited) {
	t.Helper()
	b.update(func() { b.chunks = nil })
	got := b.exited(b.start(spec))
	return string(b.kept("stdout")), got
}

func TestAnExactEnvironmentIsWhatTheCallSets(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", EnvSet: map[string]string{"A": "target"}}})
	spec := events.ExecSpec{
		Argv: []string{"/bin/cat", "/proc/self/environ"}, EnvMode: events.EnvExact,
		EnvSet: map[string]string{"EMPTY": "", "X": "a=b\nc"},
	}
	if out, _ := b.output1(t, spec); out != "EMPTY=\x00X=a=b\nc\x00" {
		t.Errorf("environment is %q", out)
	}
	spec.EnvSet = nil
	if out, _ := b.output1(t, spec); out != "" {
		t.Errorf("environment is %q", out)
	}
}

// loginHome is a home whose login files change everything that they can.
func loginHome(t *testing.T, more string) (home, bin, work string) {
	t.Helper()
	home, bin, work = t.TempDir(), t.TempDir(), t.TempDir()
	evil := "export PATH=/evil TARGET=x GONE=back HOME=/evil\nREAD=yes; export READ\ncd /\n" + more
	for _, f := range []string{".bash_profile", ".bashrc", ".profile", "bash_env"} {
		if err := os.WriteFile(filepath.Join(home, f), []byte(evil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	probe := "#!/bin/sh\n" + `printf '%s|%s|%s|%s|%s|' "$TARGET" "$PATH" "$HOME" "${GONE-unset}" "$READ"; pwd` + "\n"
	for _, name := range []string{"probe", "-probe"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(probe), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return home, bin, work
}

func TestCase_F3_WhatTheCallSaysWinsOverLoginFiles(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	home, bin, work := loginHome(t, "")
	path := bin + ":/usr/bin:/bin"
	for _, shell := range []string{"/bin/bash", "/bin/dash"} {
		for name, login := range map[string]bool{"a plain command": false, "a login shell": true} {
			t.Run(name+" with "+shell, func(t *testing.T) {
				b.update(func() { b.target = nil })
				stop := serve(t, b, execution.Config{Target: events.TargetSpec{
					Name: "local", Shell: shell, EnvSet: map[string]string{"HOME": home, "BASH_ENV": filepath.Join(home, "bash_env")},
				}})
				read := map[bool]string{true: "yes"}[login]
				want := strings.Join([]string{"s-1", path, home, "unset", read, work}, "|") + "\n"
				for _, command := range []string{"probe", "-probe"} {
					out, got := b.output1(t, events.ExecSpec{
						Argv: []string{command, "--", "$(id)"}, Cwd: work, Login: login,
						EnvSet: map[string]string{"TARGET": "s-1", "PATH": path}, EnvUnset: []string{"GONE"},
					})
					if out != want || got.ExitCode != 0 {
						t.Errorf("exit %d, stdout %q, want %q", got.ExitCode, out, want)
					}
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestCase_F3_AReadonlyConflictEndsItBeforeTheCommand(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	home, _, work := loginHome(t, "readonly TARGET=x GONE\n")
	for _, shell := range []string{"/bin/bash", "/bin/dash"} {
		for name, spec := range map[string]events.ExecSpec{
			"a name that is set":   {EnvSet: map[string]string{"TARGET": "s-1"}},
			"a name that is unset": {EnvUnset: []string{"GONE"}},
		} {
			t.Run(name+" with "+shell, func(t *testing.T) {
				b.update(func() { b.target = nil })
				stop := serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Shell: shell, EnvSet: map[string]string{"HOME": home}}})
				spec.Argv, spec.Login, spec.Cwd = []string{"/usr/bin/touch", "ran"}, true, work
				_, got := b.output1(t, spec)
				if got.ExitCode != 125 || !strings.Contains(string(b.kept("stderr")), "readonly") {
					t.Errorf("exit %d, stderr %q", got.ExitCode, b.kept("stderr"))
				}
				if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
					t.Error("the command ran")
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestALoginShellRefusesNamesThatItCannotKeep(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	for _, name := range []string{"a.b", "$(touch x)", "1x"} {
		spec := events.ExecSpec{Argv: []string{"true"}, Login: true, EnvSet: map[string]string{name: "v"}}
		if got := b.refused(b.start(spec)); got.Code != events.CodeInvalid {
			t.Errorf("%q was refused with %+v", name, got)
		}
	}
}

func TestCase_F4_ThePrefixAndTheCommandAreOneExactList(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	// The prefix prints its own command line, as any program would get it.
	prefix := []string{"/bin/sh", "-c", "cat /proc/$$/cmdline", "--"}
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", CommandPrefix: prefix}})
	for _, argv := range [][]string{
		{"-c", "id"}, {"printf", "%s", "$(id)"}, {"printf", "%s", "a\nb"}, {"x y"}, {"--version"}, {"a", ""},
	} {
		out, _ := b.output1(t, events.ExecSpec{Argv: argv})
		got := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
		if d := cmp.Diff(slices.Concat(prefix, argv), got); d != "" {
			t.Errorf("command line (-want +got):\n%s", d)
		}
	}
	for _, argv := range [][]string{{""}, {}, nil} {
		if got := b.refused(b.start(events.ExecSpec{Argv: argv})); got.Code != events.CodeInvalid {
			t.Errorf("%q was refused with %+v", argv, got)
		}
	}
}

func TestCommandsRunAsTheTargetsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may become another user")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("there is nobody here: %v", err)
	}
	want, err := exec.Command("id", "nobody").Output()
	if err != nil {
		t.Fatal(err)
	}
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", User: "nobody", Cwd: "/"}})
	out, got := b.output1(t, sh(`id; echo "$HOME $USER $LOGNAME"`))
	if out != string(want)+nobody.HomeDir+" nobody nobody\n" || got.Cleanup != cleanup(t) {
		t.Errorf("stdout is %q, exit %+v", out, got)
	}
	// What the executor may read, they may not.
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, got := b.output1(t, events.ExecSpec{Argv: []string{"cat", secret}}); got.ExitCode == 0 {
		t.Error("the executor's file was read")
	}
	if _, got := b.output1(t, sh("cat /proc/$PPID/environ")); got.ExitCode == 0 {
		t.Error("the executor's environment was read")
	}
}

func TestAUserThatIsNotThereIsNoTarget(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	err := execution.Run(t.Context(), b, execution.Config{SpoolDir: t.TempDir(), Target: events.TargetSpec{Name: "local", User: "keryx-none"}})
	if err == nil || !strings.Contains(err.Error(), "keryx-none") {
		t.Errorf("run returned %v", err)
	}
}
