package process_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"keryx/internal/process"
)

// screen collects what a terminal shows.
type screen struct {
	mu     sync.Mutex
	shown  []byte
	pieces chan struct{}
}

func (s *screen) sink(_ process.Stream, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = append(s.shown, b...)
	select {
	case s.pieces <- struct{}{}:
	default:
	}
}

func (s *screen) text() string { s.mu.Lock(); defer s.mu.Unlock(); return string(s.shown) }

func (s *screen) waitFor(t *testing.T, what string, ok func(string) bool) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for !ok(s.text()) {
		select {
		case <-s.pieces:
		case <-late.C:
			shown := s.text()
			t.Fatalf("waited in vain for %s; the screen ends in %q", what, shown[max(0, len(shown)-200):])
		}
	}
}

func holds(text string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, text) }
}

func onTerminal(t *testing.T, spec process.Spec) (*process.Process, *screen) {
	t.Helper()
	s := &screen{pieces: make(chan struct{}, 1)}
	spec.Output = s.sink
	spec.Env = env("TERM=xterm")
	if spec.Terminal == nil {
		spec.Terminal = &process.Size{Rows: 24, Cols: 80}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := process.Start(ctx, spec)
	if err != nil {
		cancel()
		t.Fatalf("start %q: %v", spec.Argv, err)
	}
	t.Cleanup(func() { cancel(); p.Wait() })
	return p, s
}

func TestCase_E1_NothingIsLostAtTheEndOfATerminal(t *testing.T) {
	t.Parallel()
	const runs = 300
	want := strings.Repeat("x", 65536) + "END"
	for i := range runs {
		script, expect := `head -c 65536 /dev/zero | tr '\0' x; printf END`, want
		if i%10 == 0 {
			script, expect = "printf hi", "hi"
		}
		p, s := onTerminal(t, process.Spec{Argv: sh(script)})
		if got := wait(t, p, 10*time.Second); got.Code != 0 || got.Signal != "" {
			t.Fatalf("run %d: exit is %+v", i, got)
		}
		if got := s.text(); got != expect {
			t.Fatalf("run %d: %d bytes, ends in %q", i, len(got), got[max(0, len(got)-8):])
		}
	}
}

func TestATerminalIsOne(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: sh(`tty
[ "$(ps -o tpgid= -p $$)" -eq $$ ] && echo foreground
: < /dev/tty && echo controlling
for fd in /proc/$$/fd/*; do readlink $fd; done | sort -u
grep -h flags /proc/$$/fdinfo/0 /proc/$$/fdinfo/1`)})
	wait(t, p, 10*time.Second)
	lines := strings.Split(s.text(), "\r\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[0], "/dev/pts/") || lines[1] != "foreground" || lines[2] != "controlling" || lines[3] != lines[0] {
		t.Errorf("the terminal shows %q", lines)
	}
	for _, line := range lines[4:] { // 04000 is O_NONBLOCK
		if strings.HasPrefix(line, "flags") && !strings.HasSuffix(line, "02") || strings.HasSuffix(line, "4002") {
			t.Errorf("a descriptor has %q", line)
		}
	}
}

func TestCase_E6_TheSizeHoldsFromTheFirstMoment(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{
		Argv: sh(`stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done`), Terminal: &process.Size{Rows: 45, Cols: 123},
	})
	s.waitFor(t, "the trap", holds("ready"))
	for range 2 { // the second is no news, and does no harm
		if err := p.Resize(process.Size{Rows: 30, Cols: 90}); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, p, 10*time.Second)
	if got := s.text(); got != "45 123\r\nready\r\n30 90\r\n" {
		t.Errorf("the terminal shows %q", got)
	}
	if err := p.Resize(process.Size{Rows: 1, Cols: 1}); !errors.Is(err, process.ErrNoTerminal) {
		t.Errorf("resize after the end: %v", err)
	}
	for _, size := range []process.Size{{}, {Rows: -1, Cols: 80}, {Rows: 24}, {Rows: 1 << 16, Cols: 1}} {
		if err := p.Resize(size); !errors.Is(err, process.ErrInvalid) {
			t.Errorf("resize to %v: %v", size, err)
		}
		if _, err := process.Start(t.Context(), process.Spec{Argv: sh("true"), Terminal: &size}); !errors.Is(err, process.ErrInvalid) {
			t.Errorf("start with %v: %v", size, err)
		}
	}
}

// Not parallel: it counts what the whole test binary has open.
func TestCase_E5_AGrandchildDoesNotHoldTheTerminal(t *testing.T) {
	once := func(script string, code int) {
		t.Helper()
		p, _ := onTerminal(t, process.Spec{Argv: sh(script)})
		began := time.Now()
		if got := wait(t, p, 10*time.Second); got.Code != code {
			t.Errorf("exit is %+v", got)
		}
		if took := time.Since(began); took >= time.Second {
			t.Errorf("%q took %v", script, took)
		}
	}
	once("true", 0)
	fds, routines := descriptors(t), runtime.NumGoroutine()
	for range 500 {
		once("true", 0)
	}
	for range 20 {
		once("sleep 60 & exit 3", 3)
		once(`(trap "" HUP; exec setsid sleep 60) & exit 3`, 3)
	}
	if n := descriptors(t); n > fds+5 {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if n := runtime.NumGoroutine(); n > routines+5 {
		t.Errorf("%d goroutines, %d before", n, routines)
	}
}

func TestWhatIsTypedIsRead(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: sh(`read a; read b; echo "<$a|$b>"`), Stdin: []byte("first\n")})
	if n, err := p.Type([]byte("second\r")); n != 7 || err != nil {
		t.Errorf("typed %d, %v", n, err)
	}
	wait(t, p, 10*time.Second)
	if got := s.text(); !strings.HasSuffix(got, "<first|second>\r\n") || !strings.Contains(got, "second\r\n") {
		t.Errorf("the terminal shows %q", got)
	}
	if _, err := p.Type([]byte("x")); !errors.Is(err, process.ErrNoTerminal) {
		t.Errorf("typing after the end: %v", err)
	}
}

func TestALargeInputDoesNotLockUp(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: sh("stty raw -echo; echo ready; exec cat")})
	s.waitFor(t, "the raw mode", holds("ready"))
	big := bytes.Repeat([]byte("0123456789"), 100_000)
	if n, err := p.Type(big); n != len(big) || err != nil {
		t.Fatalf("typed %d, %v", n, err)
	}
	s.waitFor(t, "all of it", func(shown string) bool { return len(shown) >= len(big)+len("ready\n") })
	if got := s.text(); got != "ready\n"+string(big) {
		t.Errorf("%d bytes came back of %d", len(got), len(big))
	}
}

func TestInputThatNobodyReadsIsBounded(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: sh("stty raw -echo; echo ready; exec sleep 300")})
	s.waitFor(t, "the raw mode", holds("ready"))
	taken, piece := 0, make([]byte, 256<<10)
	for range 100 {
		n, err := p.Type(piece)
		taken += n
		if errors.Is(err, process.ErrInputFull) {
			break
		}
	}
	if taken > 3<<20 {
		t.Errorf("%d bytes were taken", taken)
	}
	if err := p.Stop(nil); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, p, 3*time.Second); !got.Stopped {
		t.Errorf("exit is %+v", got)
	}
}

func TestCase_E3_ControlCEndsAFlood(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: []string{"yes"}})
	s.waitFor(t, "a flood", func(shown string) bool { return len(shown) > 1<<20 })
	began := time.Now()
	if _, err := p.Type([]byte{3}); err != nil {
		t.Fatal(err)
	}
	got := wait(t, p, 5*time.Second)
	if took := time.Since(began); took > time.Second || got.Signal != "SIGINT" {
		t.Errorf("it took %v, exit is %+v", took, got)
	}
}

func TestAStopEndsAnInteractiveShell(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: []string{"/bin/bash", "--norc", "--noprofile", "-i"}, Stdin: []byte("echo re''ady\n")})
	s.waitFor(t, "the shell", holds("ready"))
	began := time.Now()
	if err := p.Stop(nil); err != nil {
		t.Fatal(err)
	}
	got := wait(t, p, 10*time.Second)
	if took := time.Since(began); took > 2*time.Second || got.Signal == "SIGKILL" {
		t.Errorf("it took %v, exit is %+v", took, got)
	}
}

func TestATerminalThatIsOpenedAgainIsNotAtItsEnd(t *testing.T) {
	t.Parallel()
	// For a moment nobody has it open but by name.
	p, s := onTerminal(t, process.Spec{Argv: sh(`t=$(tty); exec </dev/null >/dev/null 2>&1; sleep 0.2; echo again > $t; exit 4`)})
	if got := wait(t, p, 10*time.Second); got.Code != 4 || s.text() != "again\r\n" {
		t.Errorf("exit is %+v, the terminal shows %q", got, s.text())
	}
}
