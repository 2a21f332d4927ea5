package execution

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/process"
)

const (
	// typedBuffer is how many frames may wait to be read.
	typedBuffer = 4096
	// earlyFrames and earlyFor bound what is kept of frames that come before the order
	// that starts their exec: the two travel on different subjects.
	earlyFrames = 256
	earlyFor    = 10 * time.Second
)

// earlyFrame is a frame for an exec that is not known yet.
type earlyFrame struct {
	frame events.TTYFrame
	at    time.Time
}

// takeTyped takes input until stop is called, which waits for the end of that. It is not
// in line with the orders: a job may hold its lock while the target is being registered.
func (s *service) takeTyped(typed <-chan *nats.Msg) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case m := <-typed:
				s.typed(m)
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// typed takes one frame of input. Who may type is the server's business, see the rights
// table; the access epoch is ours.
func (s *service) typed(m *nats.Msg) {
	id := events.ExecID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	var f events.TTYFrame
	if err := json.Unmarshal(m.Data, &f); err != nil {
		s.cfg.Logger.Warn("input cannot be read", "exec", id, "error", err)
		return
	}
	if len(f.Data) > events.MaxTyped {
		s.cfg.Logger.Warn("input is too large", "exec", id, "bytes", len(f.Data))
		return
	}
	s.mu.Lock()
	j := s.jobs[id]
	if j == nil {
		s.keepEarly(id, f)
	}
	s.mu.Unlock()
	if j != nil {
		j.typed(f)
	}
}

// keepEarly needs mu held.
func (s *service) keepEarly(id events.ExecID, f events.TTYFrame) {
	if s.ended[id] || len(s.early[id]) >= earlyFrames {
		return
	}
	now := time.Now()
	for other, frames := range s.early {
		if now.Sub(frames[len(frames)-1].at) > earlyFor {
			delete(s.early, other)
		}
	}
	if s.early[id] == nil && len(s.early) >= earlyFrames {
		return
	}
	s.early[id] = append(s.early[id], earlyFrame{f, now})
}

// takeEarly needs mu held.
func (s *service) takeEarly(id events.ExecID) (out []events.TTYFrame) {
	for _, e := range s.early[id] {
		out = append(out, e.frame)
	}
	delete(s.early, id)
	return out
}

// typed applies a frame, or keeps it until the launch.
func (j *job) typed(f events.TTYFrame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.proc == nil {
		if len(j.early) < earlyFrames {
			j.early = append(j.early, f)
		}
		return
	}
	j.apply(f)
}

// apply needs mu held, so that frames are taken in order. What the holder of the target
// may not do now is dropped: an input cannot be answered.
func (j *job) apply(f events.TTYFrame) {
	log := j.service.cfg.Logger.With("exec", j.order.Request.Exec)
	if err := j.tenancy.mayType(j.order, f.AccessEpoch); err != nil {
		log.Warn("input dropped", "error", err)
		return
	}
	if f.Resize != nil {
		if err := j.proc.Resize(process.Size{Rows: f.Resize.Rows, Cols: f.Resize.Cols}); err != nil {
			log.Debug("resize dropped", "error", err)
		}
	}
	if len(f.Data) == 0 {
		return
	}
	if n, err := j.proc.Type(f.Data); err != nil && !errors.Is(err, process.ErrNoTerminal) {
		log.Warn("input dropped", "bytes", len(f.Data)-n, "error", err)
	}
}
