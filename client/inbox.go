package client

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// inbox is a bounded queue between a subscription, which never waits, and one reader.
// What comes while it is full is dropped and remembered as missed, so that the reader
// looks for it in the record.
type inbox struct {
	maxMessages, maxBytes int
	// wanted filters messages; nil takes all.
	wanted func(*nats.Msg) bool
	// ready has one token when there is something to take.
	ready chan struct{}

	mu      sync.Mutex
	waiting []*nats.Msg
	bytes   int
	missed  bool
	err     error
}

func newInbox(maxMessages, maxBytes int) *inbox {
	return &inbox{maxMessages: maxMessages, maxBytes: maxBytes, ready: make(chan struct{}, 1)}
}

func (q *inbox) put(m *nats.Msg) {
	if q.wanted != nil && !q.wanted(m) {
		return
	}
	q.mu.Lock()
	if len(q.waiting) >= q.maxMessages || q.bytes+m.Size() > q.maxBytes && len(q.waiting) > 0 {
		q.missed = true
	} else {
		q.waiting, q.bytes = append(q.waiting, m), q.bytes+m.Size()
	}
	q.mu.Unlock()
	q.signal()
}

func (q *inbox) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// miss says that messages were lost before they came here.
func (q *inbox) miss() {
	q.mu.Lock()
	q.missed = true
	q.mu.Unlock()
	q.signal()
}

func (q *inbox) fail(err error) {
	q.mu.Lock()
	q.err = err
	q.mu.Unlock()
	q.signal()
}

// take empties the queue. It reports whether messages were missed since the last take,
// and the error that ended the subscription, if one did.
func (q *inbox) take() (got []*nats.Msg, missed bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	got, missed = q.waiting, q.missed
	q.waiting, q.bytes, q.missed = nil, 0, false
	return got, missed, q.err
}

// listen subscribes an inbox to subjects until stop is called. If the server refuses
// one, the inbox fails with code forbidden.
func (c *Conn) listen(q *inbox, subjects ...string) (stop func(), err error) {
	var undo []func()
	stop = func() {
		for _, fn := range undo {
			fn()
		}
	}
	for _, subject := range subjects {
		w := c.refused.watch(subject, q.fail)
		sub, err := c.nc.Subscribe(subject, q.put)
		if err != nil {
			c.refused.forget(w)
			stop()
			return nil, c.sendError(err)
		}
		c.inboxes.Store(sub, q)
		undo = append(undo, func() {
			_ = sub.Unsubscribe() // fails only once the connection is gone
			c.inboxes.Delete(sub)
			c.refused.forget(w)
		})
	}
	return stop, nil
}
