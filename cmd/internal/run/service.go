package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/fx"

	"keryx/client"
)

// ErrStopped is the cancel cause of a service's context at a clean stop.
var ErrStopped = errors.New("stopping")

// end is how services end the app: begun is closed by the first one that ends by itself.
type end struct {
	begun chan struct{}
	once  sync.Once
	err   error // set before begun is closed
}

func newEnd() *end { return &end{begun: make(chan struct{})} }

func (e *end) begin(err error) {
	e.once.Do(func() {
		e.err = err
		close(e.begun)
	})
}

// reason returns the error with which the first service ended.
func (e *end) reason() error {
	select {
	case <-e.begun:
		return e.err
	default:
		return nil
	}
}

// Principal is a service with a connection of its own: dial connects at the start, serve
// runs until its context ends, and then the connection is closed. When serve returns by
// itself the app ends, with its error if it has one.
type Principal struct {
	Name  string
	Dial  func(ctx context.Context) (*client.Conn, error)
	Serve func(ctx context.Context, c *client.Conn) error

	end    *end
	conn   atomic.Pointer[client.Conn]
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// Option appends the service to the app, behind those before it.
func (p *Principal) Option() fx.Option {
	return fx.Invoke(func(lc fx.Lifecycle, e *end) {
		p.end = e
		lc.Append(fx.Hook{OnStart: p.start, OnStop: p.stop})
	})
}

// Ready returns nil while the service is connected to the bus.
func (p *Principal) Ready() error {
	if c := p.conn.Load(); c == nil || !c.NATS().IsConnected() {
		return fmt.Errorf("%s is not connected to the bus", p.Name)
	}
	return nil
}

func (p *Principal) start(ctx context.Context) error {
	c, err := p.Dial(ctx)
	if err != nil {
		return err
	}
	p.conn.Store(c)
	// The start's context ends with the start; the service lives until the stop.
	var running context.Context
	running, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	p.done = make(chan struct{})
	go p.serve(running, c)
	return nil
}

func (p *Principal) serve(ctx context.Context, c *client.Conn) {
	defer close(p.done)
	err := p.Serve(ctx, c)
	if ctx.Err() != nil && (err == nil || errors.Is(err, ErrStopped) || errors.Is(err, context.Canceled)) {
		return
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", p.Name, err)
	}
	p.end.begin(err)
}

func (p *Principal) stop(ctx context.Context) error {
	p.cancel(ErrStopped)
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", p.Name, context.Cause(ctx))
	}
	if err := p.conn.Load().Close(); err != nil {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	return nil
}
