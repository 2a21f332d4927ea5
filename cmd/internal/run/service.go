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

// failure keeps the first error with which a service ended.
type failure struct {
	mu  sync.Mutex
	err error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *failure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Principal is a service with a connection of its own: dial connects at the start, serve
// runs until its context ends, and then the connection is closed. When serve returns by
// itself the app ends, with its error if it has one.
type Principal struct {
	Name  string
	Dial  func(ctx context.Context) (*client.Conn, error)
	Serve func(ctx context.Context, c *client.Conn) error

	sd      fx.Shutdowner
	failure *failure
	conn    atomic.Pointer[client.Conn]
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

// Option appends the service to the app, behind those before it.
func (p *Principal) Option() fx.Option {
	return fx.Invoke(func(lc fx.Lifecycle, sd fx.Shutdowner, f *failure) {
		p.sd, p.failure = sd, f
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
		p.failure.set(fmt.Errorf("%s: %w", p.Name, err))
	}
	_ = p.sd.Shutdown() // an app that is stopping already needs no more
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
