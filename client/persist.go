package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Times of one command.
const (
	// firstTry is how long the first try waits for an answer before the command is
	// sent again; later ones wait twice as long, up to lastTry.
	firstTry = 2 * time.Second
	lastTry  = 15 * time.Second
	// backoff between tries that were refused but may be retried, doubling, with a
	// jitter of a half.
	backoffMin = 20 * time.Millisecond
	backoffMax = time.Second
)

// try sends a command once and returns its answer. It gives up with errAgain when lost
// is closed, and with the error when the server refuses the subject.
type try func(ctx context.Context, lost <-chan struct{}, refused <-chan error) ([]byte, error)

// errAgain means that no answer came to this try.
var errAgain = errors.New("no answer yet")

// persist runs tries of one command until one is answered.
func (c *Conn) persist(ctx context.Context, t events.Type, m *nats.Msg, once try) ([]byte, error) {
	ctx, cancel := c.patient(ctx)
	defer cancel()
	refused := make(chan error, 1)
	w := c.refused.watch(m.Subject, func(err error) {
		select {
		case refused <- err:
		default: // told before
		}
	})
	defer c.refused.forget(w)
	begun := time.Now()
	var last error
	for wait, pause := firstTry, backoffMin; ; {
		body, err := c.try(ctx, wait, refused, once)
		switch {
		case err == nil:
			return body, nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return nil, err
		case passing(err):
			last = err
			sleep(ctx, pause/2+rand.N(pause))
			pause = min(2*pause, backoffMax)
		case errors.Is(err, errAgain):
			wait = min(2*wait, lastTry)
		case isRefusal(err) || ctx.Err() == nil:
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, timeoutError(ctx, t, m, time.Since(begun), last)
		}
	}
}

func isRefusal(err error) bool {
	var e *events.Error
	return errors.As(err, &e)
}

// passing reports whether a refusal is expected to pass by itself very soon.
func passing(err error) bool {
	var e *events.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code == events.CodeUnavailable || e.Code == events.CodeConflict || e.Code == events.CodeRateLimited
}

// try runs one try for a time, or until the connection was made anew. Nothing is sent
// while there is no connection: it would only pile up.
func (c *Conn) try(ctx context.Context, wait time.Duration, refused <-chan error, once try) ([]byte, error) {
	lost := c.again.next()
	for !c.nc.IsConnected() {
		if c.nc.IsClosed() {
			return nil, c.sendError(nats.ErrConnectionClosed)
		}
		if c.nc.IsDraining() {
			return nil, c.sendError(nats.ErrConnectionDraining)
		}
		select {
		case <-lost:
			lost = c.again.next()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errAgain)
	defer cancel()
	return once(ctx, lost, refused)
}

// sleep waits for a time; it reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (c *Conn) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.Patience)
}

// timeoutError says what was asked and for how long, and what stood in the way.
func timeoutError(ctx context.Context, t events.Type, m *nats.Msg, took time.Duration, last error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", t.Short(), context.Cause(ctx))
	}
	e := events.Errorf(events.CodeTimeout, "no answer to %s within %v", t.Short(), took.Round(time.Millisecond))
	e = e.With("command", m.Header.Get("ce-id"))
	var refusal *events.Error
	if errors.As(last, &refusal) {
		e.Message += "; the last was " + refusal.Error()
		e = e.With("last_code", string(refusal.Code))
	}
	return e
}
