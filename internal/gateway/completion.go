package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// menuEvery is how often a terminal looks which slash commands there are.
const menuEvery = 5 * time.Second

// menu is what a terminal completes: names of slash commands. It is safe for concurrent use.
type menu struct {
	mu    sync.Mutex
	names []string
}

// follow keeps the names until ctx ends; what the bus does not say leaves the last ones.
func (m *menu) follow(ctx context.Context, chat *Chat) {
	tick := time.NewTicker(menuEvery)
	defer tick.Stop()
	for {
		if names, err := chat.CommandNames(ctx); err == nil {
			m.mu.Lock()
			m.names = names
			m.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// complete is called by the line editor for each key. The tab key completes the name of a
// slash command as far as it is clear.
func (m *menu) complete(line string, pos int, key rune) (newLine string, newPos int, ok bool) {
	if key != '\t' || pos != len(line) || !strings.HasPrefix(line, "/") || strings.ContainsRune(line, ' ') {
		return "", 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	fitting := slices.DeleteFunc(slices.Clone(m.names), func(n string) bool { return !strings.HasPrefix(n, line[1:]) })
	switch len(fitting) {
	case 0:
		return "", 0, false
	case 1:
		line = "/" + fitting[0] + " "
	default:
		line = "/" + shared(fitting)
	}
	return line, len(line), true
}

// shared is the longest beginning that all names have.
func shared(names []string) string {
	out := names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, out) {
			out = out[:len(out)-1]
		}
	}
	return out
}
