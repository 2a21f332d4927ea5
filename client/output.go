package client

import (
	"context"

	"keryx/events"
)

// Output calls fn with the output of an exec, whole and in order, and returns how the
// exec ended once all that was kept has been handed out. What is missing is said by
// [Chunk.Missing]. executor is who runs the exec; chunks of others are no part of it. If
// it is empty it is looked up in the session's record.
//
// The error is an *[events.Error] if the exec has no output to its end: that of the
// executor if it refused, unknown_exec if it was lost. A slow fn is given from the stream
// what it cannot take live; of that the bus keeps 1,024 chunks.
func (c *Conn) Output(ctx context.Context, executor events.PrincipalName, session events.SessionID, exec events.ExecID, fn func(Chunk)) (events.ExecExited, error) {
	var since events.Sequence
	if executor == "" {
		var err error
		if executor, since, err = c.executorOf(ctx, session, exec); err != nil {
			return events.ExecExited{}, err
		}
	}
	r, err := c.hearOutput(executor, session)
	if err != nil {
		return events.ExecExited{}, err
	}
	defer r.stop()
	return r.read(ctx, exec, since, 0, fn)
}

// executorOf finds who was asked to run an exec, and where that is recorded.
func (c *Conn) executorOf(ctx context.Context, session events.SessionID, exec events.ExecID) (events.PrincipalName, events.Sequence, error) {
	for from := events.Sequence(0); ; {
		page, err := c.Page(ctx, session.Scope(), from, 0)
		if err != nil {
			return "", 0, err
		}
		for _, rec := range page.Records {
			if rec.Type != events.TypeExecRequested {
				continue
			}
			if d, err := events.DataOf[events.ExecRequested](rec); err == nil && d.Exec == exec {
				return d.Selection.Executor, rec.Sequence, nil
			}
		}
		if page.Next == 0 {
			return "", 0, events.Errorf(events.CodeUnknownExec, "session %s has no exec %q", session, exec)
		}
		from = page.Next
	}
}

type execEnd struct {
	exited events.ExecExited
	err    error
	seen   bool // the exec's terminal event was read
}

// awaitExec waits for the one terminal event of an exec.
func (c *Conn) awaitExec(ctx context.Context, session events.SessionID, exec events.ExecID, since events.Sequence) execEnd {
	cfg := FollowConfig{Scopes: []events.Scope{session.Scope()}, From: since, Types: []string{"exec.*"}}
	for rec, err := range c.Follow(ctx, cfg) {
		if err != nil && !isPassing(err) {
			return execEnd{err: err}
		}
		if end := endOfExec(rec, exec); end.seen {
			return end
		}
	}
	return execEnd{err: context.Cause(ctx)}
}

func endOfExec(rec events.Record, exec events.ExecID) execEnd {
	switch rec.Type {
	case events.TypeExecExited:
		d, err := events.DataOf[events.ExecExited](rec)
		return execEnd{exited: d, err: err, seen: err == nil && d.Exec == exec}
	case events.TypeExecRefused:
		d, err := events.DataOf[events.ExecRefused](rec)
		return execEnd{err: &events.Error{Code: d.Code, Message: d.Message}, seen: err == nil && d.Exec == exec}
	case events.TypeExecLost:
		d, err := events.DataOf[events.ExecLost](rec)
		return execEnd{err: events.Errorf(events.CodeUnknownExec, "the exec was lost: %s", d.Reason), seen: err == nil && d.Exec == exec}
	}
	return execEnd{}
}
