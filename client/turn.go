package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Causes by which the context of a running turn ends.
var (
	// ErrInterrupted means that somebody asked for the turn to be aborted.
	ErrInterrupted = errors.New("the turn was interrupted")
	// ErrLeaseLost means that this host no longer drives the session. What the turn
	// reports is kept as late.
	ErrLeaseLost = errors.New("the session's lease was lost")
	// ErrHostStopping means that [Conn.ServeHost] was asked to end.
	ErrHostStopping = errors.New("the host is stopping")
)

// Result is how a turn ended.
type Result struct {
	Outcome events.Outcome
	Reply   string
	// ReplyTruncated says that the middle of the reply was cut to fit.
	ReplyTruncated bool
	// Error says what went wrong when the outcome is not completed.
	Error             string
	BackgroundRunning int
}

// Turn is a running turn, given to the handler. Its methods may be used until the
// handler returns.
type Turn struct {
	ID      events.TurnID
	Session events.SessionID
	Epoch   events.Epoch
	Fence   events.Fence
	Items   []events.Item
	Names   events.Names
	// Target is where the session runs commands by default; empty if it has none.
	Target events.TargetName

	conn  *Conn
	parts atomic.Uint64
}

// Part publishes a piece of the reply while it is made. Pieces are not durable: the
// result's reply is the whole.
func (t *Turn) Part(text string) error {
	p := t.conn.Principal()
	m := nats.NewMsg(events.PartSubject(p.Profile, p.Name, t.Session, t.ID))
	m.Header.Set(events.HeaderPart, strconv.FormatUint(t.parts.Add(1), 10))
	m.Data = []byte(text)
	if err := t.conn.nc.PublishMsg(m); err != nil {
		return fmt.Errorf("publish a piece of the reply: %w", err)
	}
	return nil
}

// Times of [Turn.Exec].
const (
	// selectPatience is how long a target may be away, e.g. while its executor starts.
	selectPatience = 10 * time.Second
	// stopPatience is how long an exec may take to end after it was stopped, beyond
	// its own grace: the tree is killed, the output stored, the end reported.
	stopPatience = 30 * time.Second
)

// Exec runs a command in the session's target and calls fn with its output, complete
// and in order. When ctx ends the command is stopped and its end awaited, so that no
// process outlives the turn. Errors are those of [Conn.Output] and of the start.
func (t *Turn) Exec(ctx context.Context, spec events.ExecSpec, fn func(Chunk)) (events.ExecExited, error) {
	sel, err := t.selection(ctx)
	if err != nil {
		return events.ExecExited{}, err
	}
	started, err := t.conn.StartExec(ctx, events.StartExec{
		Session: t.Session, Fence: t.Fence, Turn: t.ID, Selection: sel, Spec: spec,
	})
	if err != nil {
		return events.ExecExited{}, err
	}
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		t.stop(reading, started.Exec, spec, cancel)
	})
	exited, err := t.conn.Output(reading, t.Session, started.Exec, fn)
	if !unwatch() {
		cancel()
		<-stopped
	}
	if err != nil && ctx.Err() != nil {
		return exited, fmt.Errorf("exec %s: %w", started.Exec, context.Cause(ctx))
	}
	return exited, err
}

// stop asks for the end of an exec and gives up waiting for it after a bound.
func (t *Turn) stop(ctx context.Context, exec events.ExecID, spec events.ExecSpec, giveUp func()) {
	asking, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	if _, err := t.conn.StopExec(asking, events.StopExec{Session: t.Session, Fence: t.Fence, Exec: exec, GraceMS: spec.GraceMS}); err != nil {
		t.conn.logger.Warn("stop an exec", "exec", exec, "error", err)
	}
	if sleep(asking, stopPatience) || ctx.Err() == nil {
		giveUp()
	}
}

// selection pins the session's target, waiting for one whose executor is away.
func (t *Turn) selection(ctx context.Context) (events.Selection, error) {
	if t.Target == "" {
		return events.Selection{}, events.Errorf(events.CodeUnknownTarget, "session %s has no target", t.Session)
	}
	deadline := time.Now().Add(selectPatience)
	for pause := backoffMin; ; pause = min(2*pause, backoffMax) {
		sel, err := t.conn.SelectTarget(ctx, t.Target)
		if !errors.Is(err, events.ErrOf(events.CodeUnknownTarget)) || time.Now().After(deadline) {
			return sel, err
		}
		if !sleep(ctx, pause) {
			return sel, context.Cause(ctx)
		}
	}
}
