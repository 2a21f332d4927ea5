package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"keryx/events"
)

// Times of [Turn.Exec].
const (
	// selectPatience is how long a target may be away.
	selectPatience = 10 * time.Second
	// defaultGrace is the time from TERM to KILL of an exec that names none.
	defaultGrace = 5 * time.Second
	// stopPatience is how long an exec may take to end after it was stopped, beyond
	// its own grace: the tree is killed, the output stored, the end reported.
	stopPatience = 30 * time.Second
)

// Exec runs a command in the session's target and calls fn with its output, whole and in
// order. When ctx ends the command is stopped and its end awaited, bounded, so that no
// process outlives the turn: the exit is returned then, with Stopped set. Errors are those
// of [Conn.Output] and of the start.
func (t *Turn) Exec(ctx context.Context, spec events.ExecSpec, fn func(Chunk)) (events.ExecExited, error) {
	sel, err := t.selection(ctx)
	if err != nil {
		return events.ExecExited{}, t.stale(err)
	}
	started := false
	exited, err := t.conn.RunExec(ctx, events.StartExec{
		Session: t.Session, Fence: t.Fence, Turn: t.ID, Selection: sel, Spec: spec,
	}, t.since(), func(events.ExecAnswer) { started = true }, fn)
	if err != nil && !started {
		return exited, t.stale(err)
	}
	return exited, err
}

// RunExec runs a command and calls fn with its output, whole and in order. started is
// called once the bus has taken the request. When ctx ends the command is stopped and its
// end awaited, bounded: the exit is returned then, with Stopped set. since is a sequence of
// the session's record before the request; 0 reads it from its beginning. Errors are
// those of [Conn.Output] and of the start.
func (c *Conn) RunExec(ctx context.Context, s events.StartExec, since events.Sequence, started func(events.ExecAnswer), fn func(Chunk)) (events.ExecExited, error) {
	r, err := c.hearOutput(s.Selection.Executor, s.Session)
	if err != nil {
		return events.ExecExited{}, err
	}
	defer r.stop()
	if ctx.Err() != nil {
		return events.ExecExited{}, context.Cause(ctx)
	}
	// Beyond this point the command may run, whatever becomes of ctx.
	lasting := context.WithoutCancel(ctx)
	answer, err := c.StartExec(lasting, s)
	if err != nil {
		return events.ExecExited{}, err
	}
	started(answer)
	reading, giveUp := context.WithCancelCause(lasting)
	defer giveUp(nil)
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.stopAndGiveUp(reading, s, answer.Exec, giveUp)
	})
	exited, err := r.read(reading, answer.Exec, since, outputLookMin, fn)
	if !unwatch() {
		giveUp(nil)
		<-stopped
	}
	if err != nil {
		return exited, fmt.Errorf("exec %s: %w", answer.Exec, err)
	}
	return exited, nil
}

// since is a sequence before all that this turn has in the record.
func (t *Turn) since() events.Sequence {
	var last events.Sequence
	for _, i := range t.Items {
		last = max(last, i.Sequence)
	}
	return last
}

// errStopUnanswered is why [Conn.RunExec] no longer waits for a command it has stopped.
var errStopUnanswered = errors.New("the command was stopped, and its end was not reported in time")

// stopAndGiveUp asks for the end of an exec and gives up waiting for it after a bound.
func (c *Conn) stopAndGiveUp(ctx context.Context, s events.StartExec, exec events.ExecID, giveUp context.CancelCauseFunc) {
	bound, grace := stopPatience+defaultGrace, s.Spec.GraceMS
	if grace != nil {
		bound = stopPatience + time.Duration(*grace)*time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	_, err := c.StopExec(ctx, events.StopExec{Session: s.Session, Fence: s.Fence, Exec: exec, GraceMS: grace})
	if err != nil && ctx.Err() == nil && !errors.Is(err, events.ErrOf(events.CodeAlreadyEnded)) {
		c.logger.Warn("stop an exec", "exec", exec, "error", err)
	}
	<-ctx.Done()
	giveUp(errStopUnanswered) // does nothing once the reader has ended
}

// selection pins the session's target, waiting for one whose executor is away.
func (t *Turn) selection(ctx context.Context) (events.Selection, error) {
	if t.Target == "" {
		return events.Selection{}, events.Errorf(events.CodeUnknownTarget, "session %s has no target", t.Session)
	}
	return t.conn.AwaitTarget(ctx, t.Target)
}

// AwaitTarget is [Conn.SelectTarget], and waits up to 10 s for a target that is not there,
// e.g. because its executor is starting.
func (c *Conn) AwaitTarget(ctx context.Context, name events.TargetName) (events.Selection, error) {
	deadline := time.Now().Add(selectPatience)
	for pause := backoffMin; ; pause = min(2*pause, backoffMax) {
		sel, err := c.SelectTarget(ctx, name)
		if !errors.Is(err, events.ErrOf(events.CodeUnknownTarget)) || time.Now().After(deadline) {
			return sel, err
		}
		if !sleep(ctx, pause) {
			return sel, context.Cause(ctx)
		}
	}
}
