package process_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/process"
)

func TestExit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   process.Exit
	}{
		"success is status 0":                 {"true", process.Exit{}},
		"a status is passed on":               {"exit 7", process.Exit{Code: 7}},
		"the highest status is passed on":     {"exit 255", process.Exit{Code: 255}},
		"a signal is named and has no status": {"kill -SEGV $$", process.Exit{Code: -1, Signal: "SIGSEGV"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := run(t, process.Spec{Argv: sh(c.script)}, 10*time.Second)
			if got.Duration <= 0 {
				t.Errorf("duration is %v", got.Duration)
			}
			c.want.Cleanup, got.Duration = events.CleanupSwept, 0
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("exit (-want +got):\n%s", d)
			}
		})
	}
}

func TestStreamsAreKeptApart(t *testing.T) {
	t.Parallel()
	_, o := run(t, process.Spec{Argv: sh("echo out; echo err >&2")}, 10*time.Second)
	if o.stdout() != "out\n" || o.stderr() != "err\n" {
		t.Errorf("stdout %q, stderr %q", o.stdout(), o.stderr())
	}
}

func TestStdoutComesFirstWhenBothStreamsWait(t *testing.T) {
	t.Parallel()
	for range 50 {
		_, o := run(t, process.Spec{Argv: sh("echo out; echo err >&2")}, 10*time.Second)
		if o.both.String() != "out\nerr\n" {
			t.Fatalf("output is %q", o.both.String())
		}
	}
}

func TestArgvIsExact(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"dashes":      {"-c", "--version", "-"},
		"newlines":    {"a\nb", "\n"},
		"empty":       {"", ""},
		"expansions":  {"$(id)", "`id`", "*", "~", "%s"},
		"spaces":      {"x y", " "},
		"not UTF-8":   {"\xff\xfe"},
		"quotes":      {`"'\`},
		"many bytes":  {strings.Repeat("x", 100_000)},
		"looks alike": {"--", "--"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The shell prints its own command line, arguments included.
			full := append([]string{"/bin/sh", "-c", "cat /proc/$$/cmdline"}, args...)
			_, o := run(t, process.Spec{Argv: full}, 10*time.Second)
			if got, want := o.stdout(), strings.Join(full, "\x00")+"\x00"; got != want {
				t.Errorf("command line is %q, want %q", got, want)
			}
		})
	}
}

func TestCase_F4_RefusesAnEmptyCommand(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]process.Spec{
		"no argv":                   {},
		"empty list":                {Argv: []string{}},
		"empty command":             {Argv: []string{"", "x"}},
		"NUL in an argument":        {Argv: []string{"echo", "a\x00b"}},
		"entry without =":           {Argv: sh("true"), Env: []string{"PATH"}},
		"entry without a name":      {Argv: sh("true"), Env: []string{"=x"}},
		"NUL in the environment":    {Argv: sh("true"), Env: []string{"A=\x00"}},
		"relative directory":        {Argv: sh("true"), Dir: "x"},
		"negative timeout":          {Argv: sh("true"), Timeout: -1},
		"negative grace at a start": {Argv: sh("true"), Grace: ptr(-5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if p, err := process.Start(t.Context(), spec); !errors.Is(err, process.ErrInvalid) {
				t.Errorf("got %v, %v; want ErrInvalid", p, err)
			}
		})
	}
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Setenv("KERYX_TEST_LEAK", "secret")
	want := []string{"A=1", "B=", "C=x=y\nz", "PATH=/usr/bin:/bin"}
	_, o := run(t, process.Spec{Argv: []string{"cat", "/proc/self/environ"}, Env: want}, 10*time.Second)
	got := strings.Split(strings.TrimSuffix(o.stdout(), "\x00"), "\x00")
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
	_, o = run(t, process.Spec{Argv: []string{"/bin/cat", "/proc/self/environ"}, Env: []string{}}, 10*time.Second)
	if o.stdout() != "" {
		t.Errorf("empty environment holds %q", o.stdout())
	}
}

func TestCommandIsLookedUpInTheChildsPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := []byte("#!/bin/sh\necho mine\n")
	if err := os.WriteFile(filepath.Join(dir, "keryx-probe"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "keryx-plain"), script, 0o644); err != nil {
		t.Fatal(err)
	}
	_, o := run(t, process.Spec{Argv: []string{"keryx-probe"}, Env: []string{"PATH=/nowhere:" + dir}}, 10*time.Second)
	if o.stdout() != "mine\n" {
		t.Errorf("stdout is %q", o.stdout())
	}
	_, o = run(t, process.Spec{Argv: []string{"keryx-probe"}, Env: []string{"PATH=."}, Dir: dir}, 10*time.Second)
	if o.stdout() != "mine\n" {
		t.Errorf("with a relative entry stdout is %q", o.stdout())
	}
}

func TestLaunchErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec process.Spec
		op   string
		want error
	}{
		"no such command":        {process.Spec{Argv: []string{"keryx-none"}, Env: env()}, "look up command", fs.ErrNotExist},
		"no such file":           {process.Spec{Argv: []string{"/nowhere/none"}}, "execute", fs.ErrNotExist},
		"file not executable":    {process.Spec{Argv: []string{plain}}, "execute", fs.ErrPermission},
		"command not executable": {process.Spec{Argv: []string{"plain"}, Env: []string{"PATH=" + dir}}, "look up command", fs.ErrPermission},
		"no such directory":      {process.Spec{Argv: sh("true"), Dir: "/nowhere"}, "enter directory", fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := process.Start(t.Context(), c.spec)
			var le *process.LaunchError
			if !errors.As(err, &le) || le.Op != c.op || !errors.Is(err, c.want) {
				t.Errorf("got %v; want %s: %v", err, c.op, c.want)
			}
		})
	}
}

func TestStdin(t *testing.T) {
	t.Parallel()
	big := []byte(strings.Repeat("0123456789", 50_000))
	_, o := run(t, process.Spec{Argv: []string{"cat"}, Stdin: big}, 10*time.Second)
	if o.stdout() != string(big) {
		t.Errorf("got %d bytes back of %d", len(o.stdout()), len(big))
	}
	_, o = run(t, process.Spec{Argv: sh("readlink /proc/self/fd/0; cat")}, 10*time.Second)
	if o.stdout() != "/dev/null\n" {
		t.Errorf("without input, stdin is %q", o.stdout())
	}
	// One that does not read is not waited for, and loses nothing else.
	got, _ := run(t, process.Spec{Argv: sh("exit 3"), Stdin: big}, 10*time.Second)
	if got.Code != 3 {
		t.Errorf("exit is %+v", got)
	}
}

func TestOnlyTheStandardDescriptorsAreInherited(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	leak := leakDescriptor(t, f)
	_, o := run(t, process.Spec{Argv: sh("ls /proc/$$/fd; echo; readlink /proc/$$/fd/*")}, 10*time.Second)
	for _, fd := range strings.Fields(strings.SplitN(o.stdout(), "\n\n", 2)[0]) {
		if !slices.Contains([]string{"0", "1", "2"}, fd) {
			t.Errorf("descriptor %s was inherited (leaked was %d):\n%s", fd, leak, o.stdout())
		}
	}
}

func TestOutputIsBlocking(t *testing.T) {
	t.Parallel()
	// 04000 is O_NONBLOCK: a program that meets it loses output at a full pipe.
	_, o := run(t, process.Spec{Argv: sh("grep flags /proc/self/fdinfo/1 >&2; grep flags /proc/self/fdinfo/2 >&2")}, 10*time.Second)
	for line := range strings.Lines(o.stderr()) {
		var flags int
		if _, err := fmt.Sscanf(line, "flags:\t%o", &flags); err != nil || flags&0o4000 != 0 {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestNothingIsLostAtTheEnd(t *testing.T) {
	t.Parallel()
	const runs = 100
	want := strings.Repeat("x", 65536) + "END"
	for i := range runs {
		_, o := run(t, process.Spec{Argv: sh(`head -c 65536 /dev/zero | tr '\0' x; printf END`)}, 10*time.Second)
		if got := o.stdout(); got != want {
			t.Fatalf("run %d: %d bytes, ends in %q", i, len(got), got[max(0, len(got)-8):])
		}
	}
}

func TestASlowSinkLosesNothing(t *testing.T) {
	t.Parallel()
	// The sink holds the first piece until the process has written all and exited.
	release := make(chan struct{})
	var got int
	first := true
	p, err := process.Start(t.Context(), process.Spec{
		Argv: sh("head -c 1000 /dev/zero; sleep 0.1; head -c 60000 /dev/zero"), Env: env(),
		Output: func(_ process.Stream, b []byte) {
			if first {
				first = false
				<-release
			}
			got += len(b)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(1500*time.Millisecond, func() { close(release) })
	wait(t, p, 10*time.Second)
	if got != 61000 {
		t.Errorf("got %d bytes", got)
	}
}

func TestOutputComesInOrder(t *testing.T) {
	t.Parallel()
	_, o := run(t, process.Spec{Argv: sh(`i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); done`)}, 10*time.Second)
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintln(&want, i)
	}
	if o.stdout() != want.String() {
		t.Errorf("stdout is %q", o.stdout())
	}
}

func TestStartWithAnEndedContextRunsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mark := filepath.Join(t.TempDir(), "ran")
	if _, err := process.Start(ctx, process.Spec{Argv: []string{"/usr/bin/touch", mark}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it ran")
	}
}
