package e2e_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"keryx/events"
	trees "keryx/internal/process"
)

// withSession starts a bus, an executor, and a host that stays, and has a first turn.
func withSession(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.serving()
	b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	first := b.start("echo first\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	if code := first.exit(30 * time.Second); code != 0 {
		t.Fatalf("the first turn exited %d", code)
	}
	return b
}

// exec runs `bus exec` to its end.
func (b *bench) exec(args ...string) *process {
	b.t.Helper()
	p := b.start("", "bus", append([]string{"exec", "cli:local", "--target", "local", "--dir", b.store()}, args...)...)
	p.exit(30 * time.Second)
	return p
}

func TestExecRunsCommandsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	for name, c := range map[string]struct {
		args        []string
		code        int
		out, errOut string
	}{
		"the exit code is the command's":       {[]string{"--", "sh", "-c", "exit 7"}, 7, "", ""},
		"the streams are kept apart":           {[]string{"--", "sh", "-c", "echo out; echo err >&2"}, 0, "out\n", "err\n"},
		"a signal is 128 and more":             {[]string{"--", "sh", "-c", "kill -9 $$"}, 137, "", ""},
		"a timeout is 124":                     {[]string{"--timeout", "200ms", "--", "sleep", "20"}, 124, "", ""},
		"a terminal has the size that it got":  {[]string{"--pty", "--size", "45x123", "--", "stty", "size"}, 0, "45 123\r\n", ""},
		"variables are set and taken away":     {[]string{"--env", "A=1", "--unset", "HOME", "--", "sh", "-c", `echo "$A${HOME-none}"`}, 0, "1none\n", ""},
		"an exact environment holds no others": {[]string{"--exact", "--env", "A=1", "--", "/usr/bin/env"}, 0, "A=1\n", ""},
		"the directory is the one asked for":   {[]string{"--cwd", "/", "--", "pwd"}, 0, "/\n", ""},
		"a command that is not there":          {[]string{"--", "keryx-none"}, 1, "", "launch_failed"},
		"no target":                            {[]string{"--target", "nowhere", "--", "true"}, 1, "", "unknown_target"},
		"a size that is none":                  {[]string{"--pty", "--size", "0x80", "--", "true"}, 2, "", "ROWSxCOLS"},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.exec(c.args...)
			if code := p.cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if p.stdout.String() != c.out || !strings.Contains(p.stderr.String(), c.errOut) {
				t.Errorf("stdout %q, stderr %q", p.stdout, p.stderr)
			}
		})
	}
}

func TestACommandOfASessionIsNoOperator(t *testing.T) {
	t.Parallel()
	g, err := trees.OpenGroups("test-e2e", events.NewID())
	if err != nil {
		t.Skipf("commands cannot be told from their owner here: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	b := withSession(t)
	p := b.exec("--", filepath.Join(binaries, "bus"), "sessions", "--dir", b.store())
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.stderr.String(), "forbidden") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, p.stdout, p.stderr)
	}
}

func TestCtrlCStopsTheCommandOfExec(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	p := b.start("", "bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--", "sh", "-c", "echo ready; sleep 300")
	b.await("the command", 20*time.Second, func() bool { return strings.Contains(p.stdout.String(), "ready") })
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(20 * time.Second); code != 130 {
		t.Errorf("exit %d", code)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if out := b.run("bus", "ps", "--dir", b.store(), "--json"); out != "" {
		t.Errorf("still there: %s", out)
	}
}

func TestJobsAreListedKilledAndRead(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	id := strings.TrimSpace(b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--pty", "--size", "10x40",
		"--", "sh", "-c", "printf 'h\\303\\251llo'; sleep 300"))
	b.await("the job to run", 20*time.Second, func() bool {
		return strings.Contains(b.run("bus", "ps", "cli:local", "--dir", b.store(), "--json"), `"started":true`)
	})
	if out := b.run("bus", "ps", "--dir", b.store()); !strings.Contains(out, id) || !strings.Contains(out, "running") {
		t.Errorf("ps says %q", out)
	}
	b.await("the output so far", 20*time.Second, func() bool {
		return b.run("bus", "output", "cli:local", id, "--dir", b.store()) == "héllo"
	})
	if out := b.run("bus", "output", "cli:local", id, "--from", "3", "--dir", b.store()); out != "llo" {
		t.Errorf("from byte 3 it is %q", out)
	}
	b.run("bus", "kill", "cli:local", id, "--grace", "1s", "--dir", b.store())
	b.await("the end", 20*time.Second, func() bool { return count(b.replay(), "exec.exited") == 2 })
	lines := strings.Split(strings.TrimSpace(b.run("bus", "output", "cli:local", id, "--cast", "--dir", b.store())), "\n")
	var head struct{ Version, Width, Height int }
	if err := json.Unmarshal([]byte(lines[0]), &head); err != nil || head.Version != 2 || head.Width != 40 || head.Height != 10 {
		t.Errorf("the recording begins with %s: %v", lines[0], err)
	}
	if len(lines) != 2 || !strings.Contains(lines[1], `"o","héllo"`) {
		t.Errorf("the recording is %q", lines)
	}
	if out := b.run("bus", "targets", "--dir", b.store()); !strings.Contains(out, "local") || !strings.Contains(out, "ex") {
		t.Errorf("targets are %q", out)
	}
	if out := b.run("bus", "leases", "--dir", b.store()); !strings.Contains(out, "target.local") || !strings.Contains(out, "held") {
		t.Errorf("leases are %q", out)
	}
}

// onTerminal starts a bus command on a terminal of its own; what it shows comes in the
// buffer.
func (b *bench) onTerminal(args ...string) (*os.File, *lockedBuffer, <-chan error) {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(binaries, "bus"), args...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 90})
	if err != nil {
		b.t.Fatal(err)
	}
	shown, ended := &lockedBuffer{}, make(chan error, 1)
	go func() {
		_, _ = io.Copy(shown, tty) // ends with EIO
		ended <- cmd.Wait()
	}()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
	})
	return tty, shown, ended
}

func TestAttachPaintsTypesAndDetaches(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	id := strings.TrimSpace(b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--pty", "--size", "10x40",
		"--", "sh", "-c", `printf '\033[?2004h\033[chello\n'; read x; stty size; echo "got $x"; sleep 300`))
	b.await("the output", 20*time.Second, func() bool {
		return strings.Contains(b.run("bus", "output", "cli:local", id, "--dir", b.store()), "hello")
	})
	watching, seen, watched := b.onTerminal("attach", "cli:local", id, "--dir", b.store())
	b.await("the picture", 20*time.Second, func() bool { return strings.Contains(seen.String(), "hello") })
	if _, err := watching.Write([]byte("ignored\r")); err != nil {
		t.Fatal(err)
	}
	tty, shown, ended := b.onTerminal("attach", "cli:local", id, "--type", "--dir", b.store())
	b.await("the picture", 20*time.Second, func() bool { return strings.Contains(shown.String(), "hello") })
	if got := shown.String(); !strings.Contains(got, "\x1b[?2004h") || strings.Contains(got, "\x1b[c") {
		t.Errorf("the picture is %q", got)
	}
	if _, err := tty.Write([]byte("yo\r")); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*lockedBuffer{shown, seen} {
		b.await("what was typed", 20*time.Second, func() bool {
			return strings.Contains(s.String(), "30 90") && strings.Contains(s.String(), "got yo\r\n")
		})
	}
	for _, of := range []struct {
		tty   *os.File
		ended <-chan error
	}{{tty, ended}, {watching, watched}} {
		if _, err := of.tty.Write([]byte{0x1d}); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-of.ended:
			if err != nil {
				t.Errorf("attach ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("attach did not end")
		}
	}
	if out := b.run("bus", "ps", "--dir", b.store()); !strings.Contains(out, id) {
		t.Error("detaching ended the command")
	}
}

func TestCase_C5_TheEndOfAJobWakesItsSession(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	marker := filepath.Join(b.dir, "marker-file-c5")
	b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--", "sh", "-c", "sleep 2; touch "+marker)
	// A turn begins and ends while the job runs.
	second := b.start("echo second\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	if code := second.exit(30 * time.Second); code != 0 {
		t.Errorf("the second turn exited %d", code)
	}
	b.start("", "gateway-bridge", "--url", b.url(), "--creds", b.creds("sh"))
	b.await("the session to be told", 30*time.Second, func() bool { return count(b.replay(), "turn.ended") == 3 })
	var reply, idle string
	for _, e := range b.replay() {
		switch e.Type {
		case "keryx.turn.ended.v1":
			reply = string(e.Data)
		case "keryx.session.idle.v1":
			if idle == "" || strings.Contains(string(e.Data), `"background_running":1`) {
				idle = string(e.Data)
			}
		}
	}
	if !strings.Contains(reply, "exited 0") {
		t.Errorf("the last turn ended with %s", reply)
	}
	if !strings.Contains(idle, `"background_running":1`) {
		t.Errorf("no idle event counts the job; %s", idle)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("the job was stopped")
	}
}
