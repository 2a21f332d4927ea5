package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/node"
)

// person sits at a terminal: types, and waits for what appears.
type person struct {
	t    *testing.T
	ptmx *os.File
	tty  *os.File

	mu    sync.Mutex
	seen  strings.Builder
	moved chan struct{}
}

func sitDown(t *testing.T) *person {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatalf("open pty: %v", err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatalf("set size: %v", err)
	}
	p := &person{t: t, ptmx: ptmx, tty: tty, moved: make(chan struct{}, 1)}
	watched := make(chan struct{})
	go func() { defer close(watched); p.watch() }()
	t.Cleanup(func() {
		_ = tty.Close() // ends the read of the other side
		<-watched
		_ = ptmx.Close()
	})
	return p
}

func (p *person) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := p.ptmx.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.moved <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := p.ptmx.WriteString(keys); err != nil {
		p.t.Fatalf("type: %v", err)
	}
}

func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// sees waits until text appears.
func (p *person) sees(text string) {
	p.t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(p.screen(), text) {
		select {
		case <-p.moved:
		case <-deadline:
			p.t.Fatalf("%q does not appear in %q", text, p.screen())
		}
	}
}

func (p *person) mode() unix.Termios {
	p.t.Helper()
	m, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatalf("read terminal mode: %v", err)
	}
	return *m
}

// talks holds a conversation at the terminal; the returned function waits for its end.
func (p *person) talks(n *node.Node, color bool) (wait func() error) {
	p.t.Helper()
	before := p.mode()
	term, err := gateway.OpenTerminal(p.tty, p.tty, color)
	if err != nil {
		p.t.Fatalf("open terminal: %v", err)
	}
	if p.mode() == before {
		p.t.Error("the terminal is not in raw mode")
	}
	conn := connect(p.t, n, "cli", events.RoleGateway)
	held := make(chan error, 1)
	go func() {
		err := gateway.Hold(context.WithoutCancel(p.t.Context()), gateway.Config{Conn: conn, Key: "k", Logger: slog.New(slog.DiscardHandler)}, term)
		held <- errors.Join(err, term.Close())
	}()
	return func() error {
		select {
		case err := <-held:
			if p.mode() != before {
				p.t.Error("the terminal was not restored")
			}
			return err
		case <-time.After(patience):
			p.t.Fatalf("the conversation does not end: %q", p.screen())
			return nil
		}
	}
}

func TestAPersonTalksAndLeaves(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), echo)
	p := sitDown(t)
	wait := p.talks(n, false)
	p.sees("new session")
	p.types("hello\r")
	p.sees("you said hello\r\n")
	p.types("/status\r")
	p.sees("turns    1\r\n")
	p.types("/new\r")
	p.sees("epoch 2 begins: /new\r\n")
	p.types("/nope\r")
	p.sees("no command /nope")
	p.types("/help\r")
	p.sees("//text    send a message that begins with a slash\r\n")
	p.types("fail now\r")
	p.sees("turn failed: as asked\r\n")
	p.types("\x1b[A\r") // history: the line before again
	p.sees("> fail now")
	p.types("\x04")
	if err := wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestRepliesStreamAboveThePromptAndCannotActOnTheTerminal(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	release := make(chan struct{})
	host(t, connect(t, n, "agent", events.RoleHost), func(_ context.Context, turn *client.Turn) client.Result {
		reply := "first\n\x1b[31mred\nstill red\x1b[0m\nworking"
		err := turn.Part(reply)
		<-release
		return client.Result{Outcome: events.OutcomeCompleted, Reply: reply + " done\x1b[2J\x1b]0;title\x07", Error: errText(err)}
	})
	p := sitDown(t)
	wait := p.talks(n, true)
	p.sees("new session")
	p.types("go\r")
	p.sees("first\r\n\x1b[31mred\r\nstill red\x1b[0m\r\n")
	p.sees("working [running ") // an unfinished line is in the prompt
	close(release)
	p.sees("working done\\x1b[2J\\x1b]0;title\\x07\r\n")
	p.types("\x04")
	if err := wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	for _, evil := range []string{"\x1b[2J", "\x1b]0;"} {
		if strings.Contains(p.screen(), evil) {
			t.Errorf("%q reached the terminal", evil)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCtrlCInterruptsAndTwiceLeaves(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), untilStopped)
	p := sitDown(t)
	wait := p.talks(n, false)
	p.sees("new session")
	p.types("run\r")
	p.sees("[running ")
	p.types("\x03")
	p.sees("turn aborted")
	p.types("half a line\x03") // clears the line; the keys between make it a first press
	p.sees("Ctrl-C again or Ctrl-D to leave")
	p.types("\x03")
	if err := wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if strings.Count(p.screen(), "turn aborted") != 1 {
		t.Errorf("the cleared line was sent: %q", p.screen())
	}
}

func TestOthersAreSeenAtTheTerminal(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), echo)
	p := sitDown(t)
	wait := p.talks(n, false)
	p.sees("new session")
	other := chat(t, gateway.Config{Conn: connect(t, n, "boss", events.RoleOperator), Key: "k"}, newFront())
	send(t, other, "look\x1b[2J")
	p.sees("boss: look\\x1b[2J\r\n")
	p.sees("you said look\\x1b[2J\r\n")
	p.types("\x04")
	if err := wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}
