package broker_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

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

// listen hears all that reaches the pattern. The returned function tells the subjects
// heard since it was last called; it needs no timer, because the server delivers to one
// connection in order: what was published before a flush comes before a mark published
// after it.
func listen(t *testing.T, b *broker.Broker, pattern string) func() []string {
	t.Helper()
	nc := bustest.System(t, b)
	all := make(chan *nats.Msg, 1<<16)
	mark := "mark." + nuid.Next()
	patterns := []string{pattern, mark}
	if pattern == ">" {
		patterns = patterns[:1] // it hears the mark too
	}
	for _, p := range patterns {
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
				break
			}
			heard = append(heard, m.Subject)
		}
		return heard
	}
}
