package broker_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"keryx/internal/broker"
	"keryx/internal/bustest"
)

// lines collects a broker's log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) option(c *broker.Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) }

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

const endMark = "test.end"

// listen hears all that reaches the pattern. The returned function tells the subjects
// heard so far; it needs no timer, because the server delivers to one connection in
// order: what was published before a flush comes before a mark published after it.
func listen(t *testing.T, b *broker.Broker, pattern string) func() []string {
	t.Helper()
	nc := bustest.System(t, b)
	all := make(chan *nats.Msg, 1<<16)
	mark := nats.NewInbox()
	for _, p := range []string{pattern, mark} {
		if _, err := nc.ChanSubscribe(p, all); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		t.Helper()
		if err := nc.Publish(mark, nil); err != nil {
			t.Fatal(err)
		}
		var heard []string
		for m := range all {
			if m.Subject == mark {
				return dedupe(heard, pattern)
			}
			heard = append(heard, m.Subject)
		}
		return nil
	}
}

// dedupe is needed by nothing but ">", which hears the mark's subject twice; marks are
// left out.
func dedupe(heard []string, pattern string) []string {
	if pattern != ">" {
		return heard
	}
	var out []string
	for _, s := range heard {
		if !strings.HasPrefix(s, "_INBOX.") {
			out = append(out, s)
		}
	}
	return out
}
