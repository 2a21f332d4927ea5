package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Do sends a command and decodes its answer into answer, a pointer or nil. The command
// is sent again, with the same id, until it is answered or ctx has ended; a context
// without a deadline gets [Config.Patience].
//
// The error is *[events.Error] for every refusal; code timeout says that no answer came
// in time and that the command may have been done. When ctx was cancelled it wraps the
// cause, and nats.ErrConnectionClosed when the connection has ended.
func (c *Conn) Do(ctx context.Context, t events.Type, data, answer any) error {
	m, err := c.message(ctx, t, data)
	if err != nil {
		return err
	}
	reply, got := c.calls.open()
	defer c.calls.close(reply)
	m.Reply = reply
	body, err := c.persist(ctx, t, m, func(ctx context.Context, lost <-chan struct{}, refused <-chan error) ([]byte, error) {
		return c.once(ctx, m, got, lost, refused)
	})
	if err != nil || answer == nil {
		return err
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", t.Short(), err)
	}
	return nil
}

// once publishes a command and waits for its single answer, to whichever try.
func (c *Conn) once(ctx context.Context, m *nats.Msg, got <-chan *nats.Msg, lost <-chan struct{}, refused <-chan error) ([]byte, error) {
	if err := c.nc.PublishMsg(m); err != nil {
		return nil, c.sendError(err)
	}
	select {
	case a := <-got:
		return answerOf(a)
	case err := <-refused:
		return nil, err
	case <-lost:
		return nil, errAgain
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answerOf decodes a message into the answer's body or the refusal.
func answerOf(m *nats.Msg) ([]byte, error) {
	if m.Header.Get("Status") == "503" { // no responders
		return nil, events.Errorf(events.CodeUnavailable, "no active authority takes commands now")
	}
	switch status := m.Header.Get(events.HeaderStatus); status {
	case events.StatusOK:
		return m.Data, nil
	case events.StatusError:
		e := new(events.Error)
		if err := json.Unmarshal(m.Data, e); err != nil || e.Code == "" {
			return nil, events.Errorf(events.CodeUndecodable, "a refusal cannot be read: %v", err)
		}
		return nil, e
	default:
		return nil, events.Errorf(events.CodeUndecodable, "an answer with %s %q", events.HeaderStatus, status)
	}
}

// message encodes a command. What the bus would refuse as too large is refused here, so
// that it never reaches the connection.
func (c *Conn) message(ctx context.Context, t events.Type, data any) (*nats.Msg, error) {
	p := c.Principal()
	subject, err := events.CmdSubject(p.Profile, p.Name, t)
	if err != nil {
		return nil, err
	}
	behalf := behalfOf(ctx)
	ev, err := events.NewCommand(p, t, behalf.command, time.Now(), data)
	if err != nil {
		return nil, err
	}
	if behalf.token != "" {
		ev.SetExtension(events.ExtActingFor, string(behalf.token))
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
	return m, checkSize(t, m)
}

func checkSize(t events.Type, m *nats.Msg) error {
	if len(m.Data) > events.MaxData {
		return events.Errorf(events.CodeTooLarge, "the data of %s has %d bytes, at most %d are taken", t.Short(), len(m.Data), events.MaxData)
	}
	size := 0
	for k, vs := range m.Header {
		for _, v := range vs {
			size += len(k) + len(v)
		}
	}
	if size > events.MaxHeaders {
		return events.Errorf(events.CodeTooLarge, "the headers of %s have %d bytes, at most %d are taken", t.Short(), size, events.MaxHeaders)
	}
	return nil
}

// sendError says why something could not be sent: the connection has ended, which is
// final, or it cannot take more now.
func (c *Conn) sendError(err error) error {
	switch {
	case c.nc.IsClosed() && isAuthError(c.nc.LastError()):
		return fmt.Errorf("%w: %w", events.Errorf(events.CodeForbidden, "the bus no longer accepts the key of %s", c.Principal().Name), nats.ErrConnectionClosed)
	case errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining):
		return fmt.Errorf("%w: %w", events.Errorf(events.CodeUnavailable, "the connection was closed"), nats.ErrConnectionClosed)
	}
	return events.Errorf(events.CodeUnavailable, "send to the bus: %v", err)
}
