package client

import (
	"context"
	"encoding/json"
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
	// backoff between tries that were refused but may be retried, doubling.
	backoffMin = 20 * time.Millisecond
	backoffMax = time.Second
)

// Do sends a command and decodes its answer, a pointer or nil. It returns
// *[events.Error] for every refusal; code timeout says that no answer came in time.
func (c *Conn) Do(ctx context.Context, t events.Type, data, answer any) error {
	body, err := c.request(ctx, t, data, c.tryOnce)
	if err != nil {
		return err
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", t.Short(), err)
	}
	return nil
}

// try sends a command once and returns its answer. It gives up with errAgain when again
// is closed or ctx ends for that cause.
type try func(ctx context.Context, m *nats.Msg, again <-chan struct{}) ([]byte, error)

// errAgain means that no answer came to this try.
var errAgain = errors.New("no answer yet")

// request runs tries of one command, all with one id, until one is answered.
func (c *Conn) request(ctx context.Context, t events.Type, data any, once try) ([]byte, error) {
	ctx, cancel := c.patient(ctx)
	defer cancel()
	m, err := c.message(ctx, t, data)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	wait, pause := firstTry, backoffMin
	for {
		body, err := c.tryFor(ctx, wait, m, once)
		var refusal *events.Error
		switch {
		case err == nil:
			return body, nil
		case ctx.Err() != nil:
			return nil, timeoutError(ctx, t, begun, err)
		case errors.As(err, &refusal) && retryNow(refusal.Code):
			if !sleep(ctx, pause/2+time.Duration(rand.Int64N(int64(pause)))) {
				return nil, timeoutError(ctx, t, begun, err)
			}
			pause = min(2*pause, backoffMax)
		case errors.Is(err, errAgain):
			wait = min(2*wait, lastTry)
		default:
			return nil, err
		}
	}
}

// retryNow reports whether a refusal is expected to pass by itself very soon.
func retryNow(code events.Code) bool {
	return code == events.CodeUnavailable || code == events.CodeConflict || code == events.CodeRateLimited
}

func (c *Conn) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.Patience)
}

func timeoutError(ctx context.Context, t events.Type, begun time.Time, last error) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", t.Short(), cause)
	}
	e := events.Errorf(events.CodeTimeout, "no answer to %s within %v", t.Short(), time.Since(begun).Round(time.Millisecond))
	var refusal *events.Error
	if errors.As(last, &refusal) && refusal.Code != events.CodeTimeout {
		e = e.With("last_code", string(refusal.Code)).With("last_message", refusal.Message)
	}
	return e
}

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

// message encodes a command, refusing at once what the bus would refuse as too large.
func (c *Conn) message(ctx context.Context, t events.Type, data any) (*nats.Msg, error) {
	p := c.Principal()
	subject, err := events.CmdSubject(p.Profile, p.Name, t)
	if err != nil {
		return nil, err
	}
	ev, err := events.NewCommand(p, t, events.CommandID(events.NewID()), time.Now(), data)
	if err != nil {
		return nil, err
	}
	trace := traceOf(ctx)
	ev.SetExtension(events.ExtTraceParent, trace.parent)
	if trace.state != "" {
		ev.SetExtension(events.ExtTraceState, trace.state)
	}
	m := nats.NewMsg(subject)
	if m.Header, m.Data, err = events.Encode(ev); err != nil {
		return nil, err
	}
	return m, checkSize(m)
}

func checkSize(m *nats.Msg) error {
	if len(m.Data) > events.MaxData {
		return events.Errorf(events.CodeTooLarge, "the data has %d bytes, at most %d are taken", len(m.Data), events.MaxData)
	}
	size := 0
	for k, vs := range m.Header {
		for _, v := range vs {
			size += len(k) + len(v)
		}
	}
	if size > events.MaxHeaders {
		return events.Errorf(events.CodeTooLarge, "the headers have %d bytes, at most %d are taken", size, events.MaxHeaders)
	}
	return nil
}

// tryFor runs one try for a time, or until the connection was made anew: whatever was
// under way then may be lost.
func (c *Conn) tryFor(ctx context.Context, wait time.Duration, m *nats.Msg, once try) ([]byte, error) {
	again := c.waiters.next()
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errAgain)
	defer cancel()
	return once(ctx, m, again)
}

// tryOnce publishes a command and waits for its single answer.
func (c *Conn) tryOnce(ctx context.Context, m *nats.Msg, again <-chan struct{}) ([]byte, error) {
	call := c.calls.open(m.Subject)
	defer c.calls.close(call)
	out := nats.NewMsg(m.Subject)
	out.Header, out.Data, out.Reply = m.Header, m.Data, call.reply
	if err := c.nc.PublishMsg(out); err != nil {
		return nil, c.publishError(err)
	}
	select {
	case a := <-call.answer:
		return answerOf(a)
	case err := <-call.refused:
		return nil, err
	case <-again:
		return nil, errAgain
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// publishError tells a closed connection, which is final, from one that is away.
func (c *Conn) publishError(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) {
		return fmt.Errorf("send a command: %w", err)
	}
	return events.Errorf(events.CodeUnavailable, "send a command: %v", err)
}

// answerOf decodes a message into the answer's body or the refusal.
func answerOf(m *nats.Msg) ([]byte, error) {
	if m.Header.Get("Status") == "503" {
		return nil, events.Errorf(events.CodeUnavailable, "no active authority takes commands now")
	}
	switch m.Header.Get(events.HeaderStatus) {
	case events.StatusOK:
		return m.Data, nil
	case events.StatusError:
		var e events.Error
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return nil, fmt.Errorf("decode a refusal: %w", err)
		}
		return nil, &e
	}
	return nil, fmt.Errorf("an answer without %s", events.HeaderStatus)
}
