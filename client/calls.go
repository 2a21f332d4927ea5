package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// calls are the commands under way whose answer is one message; they share one inbox
// subscription.
type calls struct {
	prefix  string
	mu      sync.Mutex
	pending map[string]chan *nats.Msg // by reply subject, size 1
}

// listen subscribes and makes sure that the server lets it.
func (cs *calls) listen(ctx context.Context, c *Conn) error {
	cs.prefix, cs.pending = c.nc.NewInbox()+".", make(map[string]chan *nats.Msg)
	if _, err := c.nc.Subscribe(cs.prefix+"*", cs.take); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := c.nc.FlushWithContext(ctx); err != nil {
		return c.sendError(err)
	}
	if err := c.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w: %w", events.Errorf(events.CodeForbidden, "the credentials name another principal than the bus knows"), err)
	}
	return nil
}

func (cs *calls) take(m *nats.Msg) {
	cs.mu.Lock()
	answer := cs.pending[m.Subject]
	cs.mu.Unlock()
	if answer == nil {
		return // answered, or given up
	}
	select {
	case answer <- m:
	default: // the same answer to an earlier try
	}
}

// open returns a reply subject and where its answer will come.
func (cs *calls) open() (reply string, answer <-chan *nats.Msg) {
	c := make(chan *nats.Msg, 1)
	reply = cs.prefix + events.NewID()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.pending[reply] = c
	return reply, c
}

func (cs *calls) close(reply string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.pending, reply)
}
