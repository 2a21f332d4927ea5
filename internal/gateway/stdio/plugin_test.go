package stdio_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/events"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/platformtest"
	"keryx/internal/gateway/stdio"
)

// socketVar makes this test binary a plugin that carries lines between its standard
// streams and a socket, where the test is the platform.
const socketVar = "KERYX_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if path := os.Getenv(socketVar); path != "" {
		os.Exit(carry(path))
	}
	goleak.VerifyTestMain(m)
}

func carry(path string) int {
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		_, _ = io.Copy(os.Stdout, c)
		_ = os.Stdout.Close()
	}()
	_, _ = io.Copy(c, os.Stdin) // until the bridge ends it
	return 0
}

// side is the platform behind the plugin.
type side struct {
	listen net.Listener
	conn   net.Conn
	in     *bufio.Reader
}

type line map[string]any

// meet waits for the plugin and greets; a plugin that was started anew is met again.
func (s *side) meet(t *testing.T) {
	t.Helper()
	if s.conn != nil {
		if err := s.conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Error(err)
		}
		if _, err := s.in.Peek(1); !errors.Is(err, io.EOF) {
			return // it is still there
		}
		_ = s.conn.Close()
	}
	c, err := s.listen.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	s.conn, s.in = c, bufio.NewReader(c)
	s.write(t, line{"type": "hello", "version": 1, "limit": line{"max": 4096, "unit": "utf16"}})
	if w := s.read(t); w["type"] != "welcome" || w["account"] != "bot" {
		t.Errorf("welcomed by %v", w)
	}
}

func (s *side) write(t *testing.T, l line) {
	t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := s.conn.Write(append(b, '\n')); err != nil {
		t.Error(err)
	}
}

func (s *side) read(t *testing.T) line {
	t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(platformtest.Patience)); err != nil {
		t.Error(err)
	}
	b, err := s.in.ReadBytes('\n')
	if err != nil {
		t.Errorf("no line comes: %v", err)
		return nil
	}
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		t.Error(err)
	}
	return l
}

// Say implements platformtest.Side.
func (s *side) Say(t *testing.T, m platform.Incoming) (taken, again bool) {
	t.Helper()
	s.meet(t)
	s.write(t, line{"type": "message", "id": m.Message, "chat": m.Place.Chat, "thread": m.Place.Thread, "user": m.User, "text": m.Text})
	l := s.read(t)
	return l["type"] == "taken" && l["id"] == m.Message, l["type"] == "refused" && l["retry"] == true
}

// Next implements platformtest.Side.
func (s *side) Next(t *testing.T, a platformtest.Answer) platform.Outgoing {
	t.Helper()
	s.meet(t)
	l := s.read(t)
	text := func(name string) string { v, _ := l[name].(string); return v }
	number := func(name string) int { v, _ := l[name].(float64); return int(v) }
	answer := line{"type": "sent", "id": text("id"), "message": a.Message}
	switch {
	case a.Later > 0:
		answer = line{"type": "later", "id": text("id"), "after_ms": a.Later.Milliseconds(), "error": "too fast"}
	case a.Final, a.Fail:
		answer = line{"type": "failed", "id": text("id"), "final": a.Final, "error": "no"}
	}
	s.write(t, answer)
	return platform.Outgoing{
		ID: text("id"), Place: events.Place{Chat: text("chat"), Thread: text("thread")}, Text: text("text"),
		Part: number("part"), Parts: number("parts"), Session: events.SessionID(text("session")),
	}
}

func start(t *testing.T) (platform.Platform, platformtest.Side) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kx") //nolint:usetesting // the test's own directory is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	s := &side{listen: l}
	t.Cleanup(func() {
		_ = l.Close()
		if s.conn != nil {
			_ = s.conn.Close()
		}
		_ = os.RemoveAll(dir)
	})
	return plugin(t, []string{os.Args[0]}, socketVar+"="+dir+"/s"), s
}

func plugin(t *testing.T, command []string, env ...string) *stdio.Plugin {
	t.Helper()
	p, err := stdio.New(stdio.Config{Account: "bot", Command: command, Env: env, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPluginKeepsTheRulesOfAPlatform(t *testing.T) {
	platformtest.Run(t, platformtest.Features{Ids: true}, start)
}

func TestAPluginThatBreaksTheRulesOfTheLinesIsEnded(t *testing.T) {
	t.Parallel()
	hello := `echo '{"type":"hello","version":1}'; `
	tests := []struct{ name, script, want string }{
		{"it says no hello", `echo '{"type":"message"}'; exec sleep 60`, "not hello"},
		{"it is of another version", `echo '{"type":"hello","version":9}'; exec sleep 60`, "version 9"},
		{"its limit cannot be", `echo '{"type":"hello","version":1,"limit":{"max":3,"unit":"runes"}}'; exec sleep 60`, "malformed limit"},
		{"a line is not JSON", hello + `echo nonsense; exec sleep 60`, "not JSON"},
		{"a line means nothing", hello + `echo '{"type":"dance"}'; exec sleep 60`, "dance"},
		{"it ends", hello + `exit 3`, "exit status 3"},
		{"it cannot be started", "", "start plugin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			command := []string{"/bin/sh", "-c", tt.script}
			if tt.script == "" {
				command = []string{"/nowhere/plugin"}
			}
			err := plugin(t, command).Serve(t.Context(), platformtest.NewBox())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Serve returns %v, want %q", err, tt.want)
			}
		})
	}
}
