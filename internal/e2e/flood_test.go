package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"keryx/events"
)

// floodFor is how long the flood lasts: KERYX_TEST_FLOOD=20s is the whole case.
func floodFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("KERYX_TEST_FLOOD")
	if text == "" {
		return 5 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// growth is how much a process may grow, in bytes: the case's own figure.
const growth = 64 << 20

// memory notes how much the resident memory of a process grows.
type memory struct {
	pid         int
	first, most int64
}

func (m *memory) look(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if m.first == 0 {
				m.first = kb << 10
			}
			m.most = max(m.most, kb<<10)
		}
	}
}

// viewer is `bus output --follow` and whoever reads it.
type viewer struct {
	cmd    *exec.Cmd
	notes  bytes.Buffer // of standard error
	mu     sync.Mutex
	bytes  int64
	digest hash.Hash
	hurry  chan struct{} // closed when a slow one is to go on at full speed
	ended  chan error
}

// view reads at so many bytes a second; 0 is as fast as it goes.
func (b *bench) view(id string, rate int) *viewer {
	b.t.Helper()
	v := &viewer{cmd: exec.Command(filepath.Join(binaries, "bus"), "output", "cli:local", id, "--follow", "--dir", b.store()), digest: sha256.New(), hurry: make(chan struct{}), ended: make(chan error, 1)}
	v.cmd.Stderr = &v.notes
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = v.cmd.Process.Kill() })
	go func() {
		err := v.read(out, rate)
		v.ended <- errors.Join(err, v.cmd.Wait())
	}()
	return v
}

func (v *viewer) read(out io.Reader, rate int) error {
	buf := make([]byte, 64<<10)
	if rate > 0 {
		buf = buf[:rate/10]
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := out.Read(buf)
		v.mu.Lock()
		v.bytes += int64(n)
		v.digest.Write(buf[:n])
		v.mu.Unlock()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rate > 0 {
			select {
			case <-tick.C:
			case <-v.hurry:
			}
		}
	}
}

// glance starts a bus command on a terminal of its own, and keeps nothing of what it shows;
// the channel is closed once that is the flood.
func (b *bench) glance(args ...string) (*os.File, <-chan struct{}) {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(binaries, "bus"), args...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 90})
	if err != nil {
		b.t.Fatal(err)
	}
	seen, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 64<<10)
		for flooded := false; ; {
			n, err := tty.Read(buf)
			if !flooded && bytes.Contains(buf[:n], []byte("y\r\ny\r\ny\r\n")) {
				flooded = true
				close(seen)
			}
			if err != nil { // EIO: it has ended
				return
			}
		}
	}()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait() // killed, or ended before
		_ = tty.Close()
	})
	return tty, seen
}

// exitOf waits for the recorded end of an exec.
func (b *bench) exitOf(id string, within time.Duration) (d events.ExecExited) {
	b.t.Helper()
	b.await("the end of "+id, within, func() bool {
		for _, e := range b.replay() {
			if e.Type == string(events.TypeExecExited) && strings.Contains(string(e.Data), id) {
				if err := json.Unmarshal(e.Data, &d); err != nil {
					b.t.Fatal(err)
				}
				return true
			}
		}
		return false
	})
	return d
}

// pidOf waits for an exec's process.
func (b *bench) pidOf(id string) (pid int) {
	b.t.Helper()
	b.await("the start of "+id, 20*time.Second, func() bool {
		for _, e := range b.replay() {
			var d events.ExecStarted
			if e.Type == string(events.TypeExecStarted) && json.Unmarshal(e.Data, &d) == nil && string(d.Exec) == id {
				pid = d.PID
			}
		}
		return pid != 0
	})
	return pid
}

func (b *bench) background(args ...string) string {
	b.t.Helper()
	return strings.TrimSpace(b.run("bus", append([]string{"exec", "cli:local", "--target", "local", "--dir", b.store(), "--background"}, args...)...))
}

func TestCase_E3_AFloodHarmsNobody(t *testing.T) {
	t.Parallel()
	length := floodFor(t)
	b := newBench(t)
	bus := b.serving()
	executor := b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	if code := b.start("echo first\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio").exit(30 * time.Second); code != 0 {
		t.Fatalf("the first turn exited %d", code)
	}
	sizes := map[string]*memory{"bus": {pid: bus.cmd.Process.Pid}, "executor": {pid: executor.cmd.Process.Pid}}
	for _, m := range sizes {
		m.look(t)
	}
	id := b.background("--pty", "--", "yes")
	pid := b.pidOf(id)
	slow, fast := b.view(id, 20_000), b.view(id, 0)
	tty, shown := b.glance("attach", "cli:local", id, "--type", "--dir", b.store())
	quiet := b.background("--", "sh", "-c", "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); sleep 0.01; done")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(length); end != nil; {
		select {
		case <-tick.C:
		case <-end:
			end = nil
		}
		for _, m := range sizes {
			m.look(t)
		}
	}
	select {
	case <-shown:
	case <-time.After(10 * time.Second):
		t.Fatal("the terminal does not show the flood")
	}
	pressed := time.Now()
	if _, err := tty.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	b.await("the end of yes", 10*time.Second, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if took := time.Since(pressed); took > time.Second {
		t.Errorf("Ctrl-C took %v", took)
	}
	flood := b.exitOf(id, 30*time.Second)
	b.checkFlood(flood, slow, fast)
	b.checkQuiet(quiet)
	for name, m := range sizes {
		t.Logf("%s grew by %d KiB, from %d", name, (m.most-m.first)>>10, m.first>>10)
		if m.most-m.first > growth {
			t.Errorf("%s grew by %d MiB", name, (m.most-m.first)>>20)
		}
	}
}

// checkFlood checks what the viewers of the flood got.
func (b *bench) checkFlood(flood events.ExecExited, slow, fast *viewer) {
	b.t.Helper()
	sum := flood.Streams[0]
	b.t.Logf("%d MiB came in %d ms, %d MiB of them not kept", sum.Bytes>>20, flood.DurationMS, sum.MissingBytes>>20)
	if flood.Signal != "SIGINT" || sum.Bytes < 10<<20 {
		b.t.Errorf("the flood ended with %+v", flood)
	}
	select {
	case <-fast.ended: // with the exit code of the command
	case <-time.After(30 * time.Second):
		b.t.Fatal("the fast viewer does not end")
	}
	if got := hex.EncodeToString(fast.digest.Sum(nil)); fast.bytes != sum.Bytes || got != sum.SHA256 {
		b.t.Errorf("the fast viewer got %d bytes of %d: %s", fast.bytes, sum.Bytes, fast.notes.String())
	}
	slow.mu.Lock()
	seen := slow.bytes
	slow.mu.Unlock()
	if seen == 0 || seen > sum.Bytes/10 {
		b.t.Errorf("the slow viewer got %d bytes of %d", seen, sum.Bytes)
	}
	b.checkMark(slow, sum.Bytes)
}

// checkMark lets a slow viewer go on at full speed: all that it was not given is said.
func (b *bench) checkMark(slow *viewer, all int64) {
	b.t.Helper()
	close(slow.hurry)
	select {
	case <-slow.ended:
	case <-time.After(60 * time.Second):
		b.t.Fatal("the slow viewer does not end")
	}
	skipped, marks := int64(0), 0
	for line := range strings.Lines(slow.notes.String()) {
		var n int64
		if _, err := fmt.Sscanf(line, "[... %d bytes of pty were not kept ...]", &n); err == nil {
			skipped, marks = skipped+n, marks+1
		}
	}
	b.t.Logf("the slow viewer got %d MiB, and %d marks for %d MiB", slow.bytes>>20, marks, skipped>>20)
	if marks == 0 || slow.bytes+skipped != all {
		b.t.Errorf("the slow viewer got %d bytes and %d marks for %d, of %d", slow.bytes, marks, skipped, all)
	}
}

func (b *bench) checkQuiet(id string) {
	b.t.Helper()
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	sum := sha256.Sum256([]byte(want.String()))
	got := b.exitOf(id, 30*time.Second).Streams[0]
	if got.SHA256 != hex.EncodeToString(sum[:]) || got.MissingBytes != 0 {
		b.t.Errorf("another exec's output is %+v", got)
	}
	if out := b.run("bus", "output", "cli:local", id, "--dir", b.store()); out != want.String() {
		b.t.Errorf("of another exec's output %d bytes are kept", len(out))
	}
}
