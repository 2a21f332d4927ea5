package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaries is where TestMain has built them.
var binaries string

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(roles[role]())
	}
	dir, err := os.MkdirTemp("", "keryx-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"keryx/cmd/bus", "keryx/cmd/executor", "keryx/cmd/gateway-bridge")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if err := build.Run(); err == nil {
		binaries = dir
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, "build the binaries:", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// bench is a directory with credentials and a fixed port.
type bench struct {
	t    *testing.T
	dir  string
	addr string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: t.TempDir(), addr: l.Addr().String()}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for role, name := range map[string]string{"gateway": "gw", "executor": "ex", "host": "sh"} {
		b.run("bus", "user", "add", name, "--role", role, "--profile", "default", "--out", b.creds(name), "--dir", b.store())
	}
	return b
}

func (b *bench) store() string            { return filepath.Join(b.dir, "bus") }
func (b *bench) creds(name string) string { return filepath.Join(b.dir, name+".creds") }
func (b *bench) url() string              { return "nats://" + b.addr }

// run runs a binary to its end, which must be a success, and returns its output.
func (b *bench) run(name string, args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, name), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// process is a binary that runs beside the test.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *lockedBuffer
	stderr *lockedBuffer
	done   chan struct{} // closed when it has ended; err is set then
	err    error
}

// start starts a binary; it is killed at the latest when the test ends.
func (b *bench) start(stdin string, name string, args ...string) *process {
	b.t.Helper()
	return b.startIn(nil, stdin, name, args...)
}

// startIn is start with more in the environment.
func (b *bench) startIn(env []string, stdin string, name string, args ...string) *process {
	b.t.Helper()
	return b.startPath(env, stdin, filepath.Join(binaries, name), args...)
}

// startPath is startIn for any program.
func (b *bench) startPath(env []string, stdin string, path string, args ...string) *process {
	b.t.Helper()
	p := &process{t: b.t, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.stdout, p.stderr = &lockedBuffer{}, &lockedBuffer{}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if stdin != "" {
		p.cmd.Stdin = strings.NewReader(stdin)
	}
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	b.t.Cleanup(func() {
		p.kill()
		if b.t.Failed() {
			b.t.Logf("%s said:\n%s%s", filepath.Base(path), p.stdout, p.stderr)
		}
	})
	return p
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// terminate asks the process to end and returns its exit code.
func (p *process) terminate() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.exit(20 * time.Second)
}

// exit waits for the end and returns the exit code.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		p.t.Fatalf("%s did not end within %v\n%s", p.cmd.Path, within, p.stderr)
		return -1
	}
}

// await polls until ok.
func (b *bench) await(what string, within time.Duration, ok func() bool) {
	b.t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			b.t.Fatalf("waited %v for %s", within, what)
		}
	}
}

// serving starts the bus and waits until it answers.
func (b *bench) serving(args ...string) *process {
	b.t.Helper()
	p := b.start("", "bus", append([]string{"serve", "--dir", b.store(), "--listen", b.addr}, args...)...)
	b.listening()
	return p
}

// listening waits until a bus listens.
func (b *bench) listening() {
	b.t.Helper()
	b.await("the bus to listen", 20*time.Second, func() bool {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written so far.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
