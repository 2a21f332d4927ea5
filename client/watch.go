package client

import (
	"errors"
	"regexp"
	"sync"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// signal wakes everybody who waits for its next occurrence. The zero value is ready.
type signal struct {
	mu sync.Mutex
	c  chan struct{}
}

// next returns a channel that is closed at the next occurrence.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// refusals tell who uses a subject that the server does not let this principal use it.
// The server says so beside the answers, so that without this a call would run into its
// deadline. The zero value is ready.
type refusals struct {
	mu sync.Mutex
	by map[string]map[*refusal]struct{}
}

// refusal is one user of a subject. told must not block.
type refusal struct {
	subject string
	told    func(error)
}

func (r *refusals) watch(subject string, told func(error)) *refusal {
	w := &refusal{subject: subject, told: told}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = make(map[string]map[*refusal]struct{})
	}
	if r.by[subject] == nil {
		r.by[subject] = make(map[*refusal]struct{})
	}
	r.by[subject][w] = struct{}{}
	return w
}

func (r *refusals) forget(w *refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by[w.subject], w)
	if len(r.by[w.subject]) == 0 {
		delete(r.by, w.subject)
	}
}

// subjectInText finds the subject in the server's words, the only place where it says
// which one it refused.
var subjectInText = regexp.MustCompile(`"([^"\s]+)"`)

// tell hands a permission error to the users of its subject and reports whether there
// were any.
func (r *refusals) tell(err error) bool {
	found := subjectInText.FindStringSubmatch(err.Error())
	if found == nil {
		return false
	}
	e := events.Errorf(events.CodeForbidden, "the bus does not let this principal use %s", found[1])
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.by[found[1]] {
		w.told(e)
	}
	return len(r.by[found[1]]) > 0
}

// asyncError takes what the server or the connection says without being asked.
func (c *Conn) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		if q, ok := c.inboxes.Load(sub); ok {
			q.(*inbox).miss()
			return
		}
		c.logger.Warn("messages were dropped", "error", err)
	case errors.Is(err, nats.ErrPermissionViolation):
		if !c.refused.tell(err) {
			c.logger.Error("the bus refused", "error", err)
		}
	default:
		c.logger.Warn("connection error", "error", err)
	}
}
