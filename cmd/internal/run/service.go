package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
}

// Option appends the service to the app, behind those before it.
func (p Principal) Option() fx.Option {
	return fx.Invoke(func(lc fx.Lifecycle, sd fx.Shutdowner, f *failure) {
		s := &service{p: p, sd: sd, failure: f}
		lc.Append(fx.Hook{OnStart: s.start, OnStop: s.stop})
	})
}

type service struct {
	p       Principal
	sd      fx.Shutdowner
	failure *failure
	conn    *client.Conn
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

func (s *service) start(ctx context.Context) error {
	var err error
	if s.conn, err = s.p.Dial(ctx); err != nil {
		return err
	}
	// The start's context ends with the start; the service lives until the stop.
	var running context.Context
	running, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.done = make(chan struct{})
	go s.serve(running)
	return nil
}

func (s *service) serve(ctx context.Context) {
	defer close(s.done)
	err := s.p.Serve(ctx, s.conn)
	if ctx.Err() != nil && (err == nil || errors.Is(err, ErrStopped) || errors.Is(err, context.Canceled)) {
		return
	}
	if err != nil {
		s.failure.set(fmt.Errorf("%s: %w", s.p.Name, err))
	}
	_ = s.sd.Shutdown() // an app that is stopping already needs no more
}

func (s *service) stop(ctx context.Context) error {
	s.cancel(ErrStopped)
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", s.p.Name, context.Cause(ctx))
	}
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("stop %s: %w", s.p.Name, err)
	}
	return nil
}
