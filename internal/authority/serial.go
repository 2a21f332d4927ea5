package authority

import (
	"context"
	"sync"
)

// serial runs jobs one after another on a goroutine that exists only while there
// are any: ten thousand idle sessions cost no goroutine.
type serial struct {
	t *term
	// settle runs after each job, on the same goroutine.
	settle func(context.Context)

	queueMu sync.Mutex
	queue   []func(context.Context)
	running bool
}

// add appends a job; it reports false, and does nothing, if bound jobs wait already.
// A bound of 0 is none: the authority's own jobs are never refused.
func (s *serial) add(bound int, job func(context.Context)) bool {
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	if bound > 0 && len(s.queue) >= bound {
		return false
	}
	s.queue = append(s.queue, job)
	if !s.running {
		s.running = s.t.lanes.start(s.drain)
	}
	return true
}

func (s *serial) drain() {
	for {
		job, ok := s.next()
		if !ok {
			return
		}
		if s.t.work.Err() == nil {
			job(s.t.work)
			s.settle(s.t.work)
		}
	}
}

func (s *serial) next() (func(context.Context), bool) {
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	if len(s.queue) == 0 {
		s.running, s.queue = false, nil
		return nil, false
	}
	job := s.queue[0]
	s.queue = s.queue[1:]
	return job, true
}
