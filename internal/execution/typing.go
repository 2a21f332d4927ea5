package execution

import (
	"context"
	"encoding/json"
	"errors"
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

// frame is input for the terminal of an exec, by somebody whom the server has proven.
type frame struct {
	events.TTYFrame
	by      events.PrincipalName
	session events.SessionID
	exec    events.ExecID
	at      time.Time
}

// takeTyped takes input until stop is called, which waits for the end of that. It is not
// in line with the orders: a job may hold its lock while the target is being registered.
func (s *service) takeTyped(ctx context.Context, typed <-chan *nats.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case m := <-typed:
				s.typed(ctx, m)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// typed takes one frame of input. Who may type at all is the server's business, see the
// rights table; the access epoch is ours.
func (s *service) typed(ctx context.Context, m *nats.Msg) {
	f, err := readFrame(m)
	if err != nil {
		s.cfg.Logger.Warn("input cannot be read", "subject", m.Subject, "error", err)
		return
	}
	if len(f.Data) > events.MaxTyped {
		s.answer(f, 0, events.Errorf(events.CodeInvalid, "%d bytes in one frame, the most are %d", len(f.Data), events.MaxTyped))
		return
	}
	s.mu.Lock()
	j, ended := s.jobs[f.exec], s.ended[f.exec]
	if j == nil && !ended {
		s.keepEarly(f)
	}
	s.mu.Unlock()
	switch {
	case j != nil:
		j.typed(ctx, f)
	case ended:
		s.answer(f, 0, errNoTerminal)
	}
}

func readFrame(m *nats.Msg) (frame, error) {
	f := frame{at: time.Now()}
	var err error
	if _, _, f.by, f.session, f.exec, err = events.ParseTTYSubject(m.Subject); err != nil {
		return f, err
	}
	if err := json.Unmarshal(m.Data, &f.TTYFrame); err != nil {
		return f, err
	}
	if len(f.Answer) > events.MaxTTYAnswer {
		return f, events.Errorf(events.CodeInvalid, "the name of the answer has %d bytes, the most are %d", len(f.Answer), events.MaxTTYAnswer)
	}
	return f, nil
}

// keepEarly needs mu held.
func (s *service) keepEarly(f frame) {
	for other, frames := range s.early {
		if f.at.Sub(frames[len(frames)-1].at) > earlyFor {
			delete(s.early, other)
		}
	}
	kept := s.early[f.exec]
	if len(kept) >= earlyFrames || kept == nil && len(s.early) >= earlyFrames {
		s.answer(f, 0, errNoTerminal)
		return
	}
	s.early[f.exec] = append(kept, f)
}

// takeEarly needs mu held.
func (s *service) takeEarly(id events.ExecID) []frame {
	out := s.early[id]
	delete(s.early, id)
	return out
}

// typed applies a frame, or keeps it until the launch.
func (j *job) typed(ctx context.Context, f frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.proc != nil {
		j.apply(ctx, f)
		return
	}
	if len(j.early) >= earlyFrames {
		j.service.answer(f, 0, errNoTerminal)
		return
	}
	j.early = append(j.early, f)
}

// apply needs mu held, so that frames are taken in order.
func (j *job) apply(ctx context.Context, f frame) {
	s := j.service
	if err := j.tenancy.mayType(ctx, f.by, f.AccessEpoch); err != nil {
		s.answer(f, 0, err)
		return
	}
	if f.Resize != nil {
		if err := j.resize(*f.Resize); err != nil {
			s.answer(f, 0, err)
			return
		}
	}
	if len(f.Data) == 0 {
		s.answer(f, 0, nil)
		return
	}
	_, err := j.proc.TypeThen(f.Data, func(taken int, err error) { s.answer(f, taken, err) })
	if errors.Is(err, process.ErrNoTerminal) {
		s.answer(f, 0, err)
	}
}

func (j *job) resize(to events.PTYSize) error {
	if to.Rows < 1 || to.Cols < 1 || to.Rows > events.MaxPTYSize || to.Cols > events.MaxPTYSize {
		return events.Errorf(events.CodeInvalid, "a terminal of %d rows and %d columns", to.Rows, to.Cols)
	}
	size := process.Size{Rows: to.Rows, Cols: to.Cols}
	// Before the program hears of it: what it paints then is of the new size.
	j.spool.resize(size)
	return j.proc.Resize(size)
}

var errNoTerminal = events.Errorf(events.CodeAlreadyEnded, "the exec has no terminal now")

// answer tells whoever typed what became of it, if it was asked for. One that is lost with
// the connection is not sent again: input is not a command.
func (s *service) answer(f frame, taken int, err error) {
	if err != nil {
		s.cfg.Logger.Debug("input not taken", "exec", f.exec, "by", f.by, "bytes", len(f.Data)-taken, "error", err)
	}
	if f.Answer == "" {
		return
	}
	a := events.TTYAnswer{Answer: f.Answer, Taken: taken, Left: len(f.Data) - taken, Error: refusalOf(err)}
	body, err := json.Marshal(a)
	if err != nil {
		s.cfg.Logger.Error("encode an answer to input", "exec", f.exec, "error", err)
		return
	}
	p := s.bus.Principal()
	subject := events.TypedSubject(p.Profile, p.Name, f.by, f.session, f.exec)
	if err := s.bus.NATS().Publish(subject, body); err != nil {
		s.cfg.Logger.Debug("answer input", "exec", f.exec, "error", err)
	}
}

// refusalOf says in the bus's words why input was not taken.
func refusalOf(err error) *events.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*events.Error](err); ok {
		return e
	}
	code := events.CodeInvalid
	switch {
	case errors.Is(err, process.ErrNoTerminal):
		return errNoTerminal
	case errors.Is(err, process.ErrLineTooLong), errors.Is(err, process.ErrInputFull):
		code = events.CodeTooLarge
	}
	return events.Errorf(code, "%v", err)
}
