package client

import (
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// calls are the commands under way whose answer is one message; they share one inbox
// subscription.
type calls struct {
	prefix  string
	mu      sync.Mutex
	pending map[string]*call
}

// call is one try of a command.
type call struct {
	reply   string
	subject string
	answer  chan *nats.Msg // size 1; later answers to one try are dropped
	refused chan error     // size 1
}

func (cs *calls) listen(c *Conn) error {
	cs.prefix = c.nc.NewInbox() + "."
	_, err := c.nc.Subscribe(cs.prefix+"*", cs.take)
	return err
}

func (cs *calls) take(m *nats.Msg) {
	cs.mu.Lock()
	call := cs.pending[m.Subject]
	cs.mu.Unlock()
	if call == nil {
		return // answered, or given up
	}
	select {
	case call.answer <- m:
	default:
	}
}

func (cs *calls) open(subject string) *call {
	call := &call{
		reply: cs.prefix + events.NewID(), subject: subject,
		answer: make(chan *nats.Msg, 1), refused: make(chan error, 1),
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.pending[call.reply] = call
	return call
}

func (cs *calls) close(call *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.pending, call.reply)
}

// forbid ends the pending calls on the subject that the server refused to publish on,
// and reports whether there were any. The server names the subject in its text, which
// is the only place where it says so.
func (cs *calls) forbid(err error) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	found := false
	for _, call := range cs.pending {
		if !strings.Contains(err.Error(), `"`+call.subject+`"`) {
			continue
		}
		found = true
		select {
		case call.refused <- events.Errorf(events.CodeForbidden, "the bus does not let this principal publish on %s", call.subject):
		default:
		}
	}
	return found
}
