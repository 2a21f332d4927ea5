package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"keryx/events"
)

// Bounds of a handler.
const (
	// ordersWaiting is how many orders may wait to be read; one that comes while so many
	// wait is lost, and fails at its deadline.
	ordersWaiting = 1024
	// handledAtOnce is how many orders are carried out at once.
	handledAtOnce = 64
	// answerWithin bounds the report of an outcome.
	answerWithin = 30 * time.Second
)

// Invocation is a slash command that a handler was given.
type Invocation struct {
	ID   events.CommandID
	Name events.CommandName
	// RawArgs is what was typed behind the name and one blank, as it was typed.
	RawArgs string

	fields map[events.CommandField]*string
}

// Field returns one of the fields that the command accepts; known is false for one that it
// does not accept, or that nobody knows.
func (i Invocation) Field(f events.CommandField) (value string, known bool) {
	v := i.fields[f]
	if v == nil {
		return "", false
	}
	return *v, true
}

// Command is a slash command and what carries it out.
type Command struct {
	events.CommandSpec
	// Run carries it out and returns what to say. Several run at once, each on a goroutine of
	// its own. ctx ends at the command's deadline and when the handler stops; Run must return
	// soon then. An error is told to who gave the command, by its text, and a panic is told as
	// such; neither is tried again.
	Run func(ctx context.Context, i Invocation) (string, error)
}

// HandlerConfig says what a process carries out.
type HandlerConfig struct {
	Commands []Command
	// LeaseTTL is how long the process may be silent and still counts as there. 0: the bus's
	// default.
	LeaseTTL time.Duration
}

// ServeCommand is [Conn.ServeHandler] for one slash command.
func (c *Conn) ServeCommand(ctx context.Context, cmd Command) error {
	return c.ServeHandler(ctx, HandlerConfig{Commands: []Command{cmd}})
}

// ServeHandler registers what this process carries out, and carries it out until ctx ends;
// it returns nil then, once everything under way has returned. While the bus is away it stays
// registered for its lease's ttl, and registers again once the bus is back. While another
// process of the same principal is registered it stands by.
//
// It returns an error, with code name_taken when another has one of the names, when the bus
// refuses the registration. A connection serves one handler at a time.
func (c *Conn) ServeHandler(ctx context.Context, cfg HandlerConfig) error {
	p := c.Principal()
	orders := make(chan *nats.Msg, ordersWaiting)
	sub, err := c.nc.ChanSubscribe(events.HandlerAll(p.Profile, p.Name, c.Instance()), orders)
	if err != nil {
		return fmt.Errorf("serve handler: %w", c.sendError(err))
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	h := &handler{
		conn: c, cfg: cfg, slots: semaphore.NewWeighted(handledAtOnce),
		keeper: NewKeeper(KeeperConfig{Caller: c, Instance: c.Instance(), Logger: c.logger}),
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer h.work.Wait()
	defer cancel(nil)
	h.work.Go(func() { h.keeper.Run(ctx) })
	h.work.Go(func() { h.register(ctx, cancel) })
	h.loop(ctx, orders)
	if failed, ok := errors.AsType[*handlerError](context.Cause(ctx)); ok {
		return fmt.Errorf("serve handler: %w", failed.err)
	}
	return nil
}

// handlerError tells why a handler ended from why its caller ended it.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return e.err.Error() }

type handler struct {
	conn   *Conn
	cfg    HandlerConfig
	keeper *Keeper
	slots  *semaphore.Weighted
	work   sync.WaitGroup
}

// register holds the lease that stands for the process, says what it carries out, and does
// both anew whenever the lease is lost.
func (h *handler) register(ctx context.Context, fail context.CancelCauseFunc) {
	p := h.conn.Principal()
	key := events.LeaseKey{Profile: p.Profile, Kind: events.LeaseHandler, Name: string(p.Name)}
	for pause := backoffMin; ; pause = min(2*pause, backoffMax) {
		held, err := h.keeper.Acquire(ctx, key, LeaseTerms{TTL: h.cfg.LeaseTTL})
		if err == nil {
			if err = h.declare(ctx, held.Fence()); err == nil {
				pause = backoffMin
				h.conn.logger.Info("registered", "commands", len(h.cfg.Commands))
				h.whileHeld(ctx, held)
			}
			h.giveBack(ctx, held)
		}
		switch {
		case ctx.Err() != nil:
			return
		case refusedForGood(err):
			fail(&handlerError{err})
			return
		case err != nil:
			h.conn.logger.Warn("not registered yet", "error", err)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// refusedForGood reports whether asking again cannot help.
func refusedForGood(err error) bool {
	for _, code := range []events.Code{events.CodeForbidden, events.CodeLeaseRevoked, events.CodeNameTaken, events.CodeInvalid} {
		if errors.Is(err, events.ErrOf(code)) {
			return true
		}
	}
	return errors.Is(err, nats.ErrConnectionClosed)
}

func (h *handler) declare(ctx context.Context, fence events.Fence) error {
	d := events.RegisterHandler{Instance: h.conn.Instance(), LeaseFence: fence}
	for _, c := range h.cfg.Commands {
		d.Commands = append(d.Commands, c.CommandSpec)
	}
	return h.conn.RegisterHandler(ctx, d)
}

func (h *handler) whileHeld(ctx context.Context, held *Held) {
	select {
	case <-held.Lost():
	case <-ctx.Done():
	}
}

// giveBack ends the registration, unless it has ended.
func (h *handler) giveBack(ctx context.Context, held *Held) {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := held.Release(bound); err != nil && !errors.Is(err, events.ErrOf(events.CodeLeaseLost)) {
		h.conn.logger.Warn("give a registration back", "error", err)
	}
}

// loop takes orders until ctx ends.
func (h *handler) loop(ctx context.Context, orders <-chan *nats.Msg) {
	for {
		select {
		case m := <-orders:
			if h.slots.Acquire(ctx, 1) != nil {
				return
			}
			h.work.Go(func() {
				defer h.slots.Release(1)
				h.order(withTraceOf(ctx, m), m)
			})
		case <-ctx.Done():
			return
		}
	}
}

func (h *handler) order(ctx context.Context, m *nats.Msg) {
	verb := events.HandlerVerb(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	var err error
	switch verb {
	case events.HandlerInvoke:
		var o events.InvokeOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			err = h.invoke(ctx, o)
		}
	default:
		err = errors.New("an order that this handler does not know")
	}
	if err != nil {
		h.conn.logger.Error("an order was not carried out", "verb", verb, "error", err)
	}
}

// invoke carries out a slash command and reports what came of it, once.
func (h *handler) invoke(ctx context.Context, o events.InvokeOrder) error {
	a := events.AnswerCommand{Invocation: o.Invocation, Instance: h.conn.Instance()}
	a.Reply, a.Error = h.run(ctx, o)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	err := h.conn.AnswerCommand(ctx, a)
	if errors.Is(err, events.ErrOf(events.CodeTooLarge)) {
		a.Reply, a.Error = "", events.Errorf(events.CodeHandlerFailed, "it was carried out, but its reply was not taken: %v", err)
		err = h.conn.AnswerCommand(ctx, a)
	}
	return err
}

func (h *handler) run(ctx context.Context, o events.InvokeOrder) (reply string, failed *events.Error) {
	i := Invocation{ID: o.Invocation, Name: o.Name, RawArgs: o.RawArgs}
	if err := json.Unmarshal(o.Fields, &i.fields); err != nil {
		return "", events.Errorf(events.CodeUndecodable, "the fields cannot be read: %v", err)
	}
	for _, c := range h.cfg.Commands {
		if c.Name == o.Name {
			ctx, cancel := context.WithTimeout(ctx, time.Duration(o.DeadlineMS)*time.Millisecond)
			defer cancel()
			return outcome(h.conn.logger, func() (string, error) { return c.Run(ctx, i) })
		}
	}
	return "", events.Errorf(events.CodeUnknownCommand, "this handler does not carry out /%s", o.Name)
}

// outcome runs what a handler was given. What a panic says is for its own log.
func outcome[A any](log *slog.Logger, run func() (A, error)) (a A, failed *events.Error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("a handler panicked", "panic", v, "stack", string(debug.Stack()))
			failed = events.Errorf(events.CodeHandlerFailed, "the handler panicked")
		}
	}()
	a, err := run()
	if err == nil {
		return a, nil
	}
	if failed, ok := errors.AsType[*events.Error](err); ok {
		return a, failed
	}
	return a, events.Errorf(events.CodeHandlerFailed, "%v", err)
}

// RegisterHandler says which slash commands this instance carries out, under its lease.
// [Conn.ServeHandler] does it for handlers that need nothing special.
func (c *Conn) RegisterHandler(ctx context.Context, r events.RegisterHandler) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdHandlerRegister, r, nil)
}

// AnswerCommand tells the outcome of a slash command that was given to this instance.
func (c *Conn) AnswerCommand(ctx context.Context, a events.AnswerCommand) error {
	a.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdCommandAnswer, a, nil)
}
