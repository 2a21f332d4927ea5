package execution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/process"
)

const (
	// lookAgain is how often a lost connection is looked at.
	lookAgain = 50 * time.Millisecond
)

// sender brings the output of one command from its spool to the bus. It is used by one
// goroutine.
type sender struct {
	bus     Bus
	spool   *spool
	session events.SessionID
	exec    events.ExecID
	subject string
	logger  *slog.Logger

	buf        []byte
	flushed    time.Time
	reconnects uint64
	// suspect is true once chunks may be missing in the middle.
	suspect bool
	ahead
}

func newSender(bus Bus, s *spool, session events.SessionID, exec events.ExecID, logger *slog.Logger) *sender {
	p := bus.Principal()
	return &sender{
		bus: bus, spool: s, session: session, exec: exec, logger: logger,
		subject: events.OutSubject(p.Profile, p.Name, session, exec),
		buf:     make([]byte, events.MaxChunk), reconnects: bus.NATS().Stats().Reconnects,
	}
}

// run sends until the spool has ended and is empty. Errors are those of ctx, and of a
// connection that was closed.
func (s *sender) run(ctx context.Context) error {
	nc := s.bus.NATS()
	again := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(again)
	for {
		what, wait := s.spool.due(time.Now(), s.flushed)
		var err error
		switch what {
		case pendingDone:
			return nil
		case pendingNow:
			err = s.flush(ctx)
		default:
			err = s.idle(ctx, what, wait, again)
		}
		if err != nil {
			return err
		}
	}
}

// idle waits for output, or for the time to send what waits. When the connection was
// made anew meanwhile it sends again what was swallowed: the command may be silent for
// long.
func (s *sender) idle(ctx context.Context, what pending, wait time.Duration, again <-chan nats.Status) error {
	var timer <-chan time.Time
	if what == pendingLater {
		t := time.NewTimer(wait)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-s.spool.wake:
	case <-timer:
	case <-again: // also when the connection was closed, which is an error below
		return s.awaitConnection(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// flush sends all that waits.
func (s *sender) flush(ctx context.Context) error {
	for {
		if err := s.awaitConnection(ctx); err != nil {
			return err
		}
		c, data, ok := s.spool.next(s.buf)
		if !ok {
			s.flushed = time.Now()
			return nil
		}
		s.publish(c, data)
		if s.sent(c) {
			s.letCatchUp(ctx)
		}
	}
}

// publish sends one chunk. What fails here is found missing at the end.
func (s *sender) publish(c chunk, data []byte) {
	m := nats.NewMsg(s.subject)
	m.Header.Set(events.HeaderStream, c.stream.String())
	m.Header.Set(events.HeaderOffset, strconv.FormatInt(c.offset, 10))
	m.Header.Set(events.HeaderChunk, strconv.FormatUint(c.number, 10))
	m.Header.Set(events.HeaderTime, strconv.FormatInt(c.at.UnixMicro(), 10))
	if c.size != (process.Size{}) {
		m.Header.Set(events.HeaderSize, fmt.Sprintf("%dx%d", c.size.Rows, c.size.Cols))
	}
	m.Data = data
	if err := s.bus.NATS().PublishMsg(m); err != nil {
		s.suspect = true
		s.logger.Debug("send output", "exec", s.exec, "chunk", c.number, "error", err)
	}
}

// awaitConnection waits while the bus is away, so that output gathers in the spool, and
// sends again what a lost connection swallowed.
func (s *sender) awaitConnection(ctx context.Context) error {
	nc := s.bus.NATS()
	for !nc.IsConnected() {
		if nc.IsClosed() {
			return fmt.Errorf("send output: %w", nats.ErrConnectionClosed)
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return err
		}
	}
	if now := nc.Stats().Reconnects; now != s.reconnects {
		s.reconnects, s.suspect = now, true
		return s.repair(ctx)
	}
	return nil
}

// sleep waits; its error is the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// final reports whether trying again cannot help.
func final(err error) bool {
	if e, ok := errors.AsType[*events.Error](err); ok {
		info, _ := events.Lookup(e.Code)
		return !info.Retryable
	}
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining)
}
