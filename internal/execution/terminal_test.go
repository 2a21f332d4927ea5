package execution_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/execution"
)

// typing sends a frame to the terminal of an exec.
func (b *memoryBus) typing(o events.StartOrder, f events.TTYFrame) {
	b.t.Helper()
	body, err := json.Marshal(f)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.nc.Publish(events.TTYSubject(profile, executor, "op", o.Session, o.Request.Exec), body); err != nil {
		b.t.Fatal(err)
	}
}

func onTerminal(script string) events.ExecSpec {
	spec := sh(script)
	spec.PTY = &events.PTYSize{Rows: 45, Cols: 123}
	return spec
}

// shows waits until the terminal has shown a text.
func (b *memoryBus) shows(text string) {
	b.t.Helper()
	b.until("the text "+text, func() bool {
		var all strings.Builder
		for _, c := range b.chunks {
			all.Write(c.data)
		}
		return strings.Contains(all.String(), text)
	})
}

func TestCase_E6_AResizeBeforeTheStartIsNotLost(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	o := b.order(onTerminal(`stty size; read x; stty size`))
	for range 2 {
		b.typing(o, events.TTYFrame{Resize: &events.PTYSize{Rows: 30, Cols: 90}})
	}
	b.tell(events.ExecStart, o)
	b.started(o)
	b.shows("\r\n")
	b.typing(o, events.TTYFrame{Resize: &events.PTYSize{Rows: 30, Cols: 90}, Data: []byte("go\r")})
	got := b.exited(o)
	lines := strings.Split(string(b.kept("pty")), "\r\n")
	if len(lines) != 4 || lines[0] != "45 123" && lines[0] != "30 90" || lines[2] != "30 90" {
		t.Errorf("the terminal shows %q", lines)
	}
	if len(got.Streams) != 1 || got.Streams[0].Name != "pty" || got.Streams[0].SHA256 != sum(string(b.kept("pty"))) {
		t.Errorf("streams are %+v", got.Streams)
	}
}

func TestInputOfAnotherAccessEpochIsDropped(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	o := b.start(onTerminal(`stty -echo; echo ready; read x; echo "<$x>"`))
	b.shows("ready")
	b.typing(o, events.TTYFrame{AccessEpoch: 1, Data: []byte("stale\r")})
	b.typing(o, events.TTYFrame{Data: make([]byte, events.MaxTyped+1)})
	b.typing(o, events.TTYFrame{Data: []byte("right\r")})
	b.exited(o)
	if got := string(b.kept("pty")); got != "ready\r\n<right>\r\n" {
		t.Errorf("the terminal shows %q", got)
	}
}

func TestInputIsDroppedWhileTheTargetIsNotHeld(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	file := filepath.Join(t.TempDir(), "typed")
	o := b.start(onTerminal(`stty -echo; echo ready; read x; touch ` + file))
	b.shows("ready")
	b.update(func() { b.taken = true })
	for { // until a launch is refused, the lease counts
		p := b.start(sh("true"))
		lost := false
		b.until("an end", func() bool {
			_, no := factOf(b, func(r events.ReportRefused) bool { return r.Fact.Exec == p.Request.Exec })
			_, yes := factOf(b, func(r events.ReportExited) bool { return r.Fact.Exec == p.Request.Exec })
			lost = no
			return no || yes
		})
		if lost {
			break
		}
	}
	b.typing(o, events.TTYFrame{Data: []byte("x\r")})
	b.update(func() { b.taken, b.target = false, nil })
	b.until("a registration anew", func() bool { return b.target != nil })
	if _, err := os.Stat(file); err == nil {
		t.Error("it was typed")
	}
	b.exited(b.start(sh("true"))) // held again
	b.typing(o, events.TTYFrame{Data: []byte("x\r")})
	b.exited(o)
}

func TestCase_E3_AFloodOnATerminalIsEndedFromTheKeyboard(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	b.light = true
	serve(t, b, execution.Config{})
	o := b.start(events.ExecSpec{Argv: []string{"yes"}, PTY: &events.PTYSize{Rows: 24, Cols: 80}})
	b.until("a flood", func() bool { return len(b.chunks) > 20 })
	other := b.start(sh("echo whole; sleep 0.2; echo too"))
	if got := b.exited(other); got.Streams[0].SHA256 != sum("whole\ntoo\n") || got.Streams[0].MissingBytes != 0 {
		t.Errorf("another's output is %+v", got.Streams)
	}
	began := time.Now()
	b.typing(o, events.TTYFrame{Data: []byte{3}})
	got := b.exited(o)
	if took := time.Since(began); got.Signal != "SIGINT" || took > 5*time.Second {
		t.Errorf("it took %v, exit is %+v", took, got)
	}
}

func TestCase_F1_ATerminalHidesTheSameAsPipes(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	b.exited(b.start(onTerminal(`env; tr '\\0' '\\n' < /proc/self/environ; echo "[$TERM]"`)))
	if got := string(b.kept("pty")); strings.Contains(got, "tok-abc123") || !strings.Contains(got, "KERYX_SESSION=") || !strings.Contains(got, "[xterm-256color]") {
		t.Errorf("the terminal shows %q", got)
	}
}
