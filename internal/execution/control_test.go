package execution_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/execution"
)

// typed sends a frame as somebody and returns what became of it.
func (b *memoryBus) typed(o events.StartOrder, by events.PrincipalName, f events.TTYFrame) events.TTYAnswer {
	b.t.Helper()
	f.Answer = events.NewID()
	answers := make(chan *nats.Msg, 16)
	sub, err := b.nc.ChanSubscribe(events.TypedSubject(profile, executor, by, o.Session, o.Request.Exec), answers)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	body, err := json.Marshal(f)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.nc.Publish(events.TTYSubject(profile, executor, by, o.Session, o.Request.Exec), body); err != nil {
		b.t.Fatal(err)
	}
	late := time.After(20 * time.Second)
	for {
		select {
		case m := <-answers:
			var a events.TTYAnswer
			if err := json.Unmarshal(m.Data, &a); err != nil {
				b.t.Fatal(err)
			}
			if a.Answer == f.Answer {
				return a
			}
		case <-late:
			b.t.Fatal("input was not answered")
		}
	}
}

// takeOver changes who may type, and tells the executor if it is to hear of it.
func (b *memoryBus) takeOver(by events.PrincipalName, tell bool) events.Selection {
	b.t.Helper()
	var sel events.Selection
	b.update(func() {
		b.epoch++
		b.controller = by
		sel = b.selection()
	})
	if tell {
		b.tell(events.ExecControl, events.ControlOrder{Target: "local", AccessEpoch: sel.AccessEpoch, Controller: by})
	}
	return sel
}

func code(a events.TTYAnswer) events.Code {
	if a.Error == nil {
		return ""
	}
	return a.Error.Code
}

const readLines = `stty -echo; echo ready; while read x; do echo "<$x>"; done`

func TestOnlyWhoeverHasControlTypes(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"the order comes": true, "the order is lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t)
			serve(t, b, execution.Config{})
			o := b.start(onTerminal(readLines))
			b.shows("ready")
			if a := b.typed(o, "host", events.TTYFrame{Data: []byte("before\r")}); a.Taken != 7 || a.Error != nil {
				t.Errorf("before the take-over: %+v", a)
			}
			sel := b.takeOver("op", told)
			if a := b.typed(o, "op", events.TTYFrame{AccessEpoch: sel.AccessEpoch, Data: []byte("mine\r")}); a.Taken != 5 || a.Error != nil {
				t.Errorf("the new writer: %+v", a)
			}
			for by, epoch := range map[events.PrincipalName]uint64{"host": 0, "op": 0, "other": sel.AccessEpoch} {
				a := b.typed(o, by, events.TTYFrame{AccessEpoch: epoch, Data: []byte("stale\r")})
				if a.Taken != 0 || a.Left != 6 || code(a) != events.CodeStaleSelection || a.Error.Details["controller"] != "op" {
					t.Errorf("%s of epoch %d: %+v", by, epoch, a)
				}
			}
			sel = b.takeOver("", told)
			if a := b.typed(o, "host", events.TTYFrame{AccessEpoch: sel.AccessEpoch, Data: []byte("after\r")}); a.Taken != 6 || a.Error != nil {
				t.Errorf("after it was given back: %+v", a)
			}
			b.shows("<after>")
			if got := string(b.kept("pty")); got != "ready\r\n<before>\r\n<mine>\r\n<after>\r\n" {
				t.Errorf("the terminal shows %q", got)
			}
		})
	}
}

func TestAStartOfAnEpochBeforeATakeOverIsRefused(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"the order comes": true, "the order is lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t)
			serve(t, b, execution.Config{})
			stale := b.order(sh("true"))
			b.takeOver("op", told)
			fresh := b.start(sh("true"))
			b.exited(fresh)
			b.tell(events.ExecStart, stale)
			if got := b.refused(stale); got.Code != events.CodeStaleSelection || !strings.Contains(got.Message, "access epoch") {
				t.Errorf("refused with %+v", got)
			}
		})
	}
}

func TestWhatATerminalDoesNotTakeIsSaid(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	o := b.start(onTerminal(`stty -echo; echo ready; read x; echo "${#x}"; read x; exit 0`))
	b.shows("ready")
	long := strings.Repeat("x", 5000) + "\r"
	if a := b.typed(o, "op", events.TTYFrame{Data: []byte(long)}); a.Taken != 4096 || a.Left != 905 || code(a) != events.CodeTooLarge {
		t.Errorf("a line of 5,000: %+v", a)
	}
	b.shows("4095\r\n")
	if a := b.typed(o, "op", events.TTYFrame{Resize: &events.PTYSize{Rows: 0, Cols: 80}}); code(a) != events.CodeInvalid {
		t.Errorf("a size of no rows: %+v", a)
	}
	if a := b.typed(o, "op", events.TTYFrame{Data: make([]byte, events.MaxTyped+1)}); code(a) != events.CodeInvalid {
		t.Errorf("a frame that is too large: %+v", a)
	}
	b.typed(o, "op", events.TTYFrame{Data: []byte("\r")})
	b.exited(o)
	if a := b.typed(o, "op", events.TTYFrame{Data: []byte("late")}); a.Left != 4 || code(a) != events.CodeAlreadyEnded {
		t.Errorf("after the end: %+v", a)
	}
}

func TestChunksSayTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	o := b.start(onTerminal(`stty -echo; echo one; read x; echo two; read x`))
	b.shows("one")
	b.typed(o, "op", events.TTYFrame{Resize: &events.PTYSize{Rows: 30, Cols: 90}, Data: []byte("\r")})
	b.shows("two")
	b.typed(o, "op", events.TTYFrame{Data: []byte("\r")})
	b.exited(o)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.chunks {
		want := "45x123"
		if strings.Contains(string(c.data), "two") {
			want = "30x90"
		}
		if len(c.data) > 2 && c.size != want {
			t.Errorf("%q is said to be of %s, want %s", c.data, c.size, want)
		}
	}
}
