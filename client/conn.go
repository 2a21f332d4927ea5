package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"keryx/events"
)

// Config says how to connect. Credentials, and URL or InProcess, are needed.
type Config struct {
	// URL of the bus, e.g. nats://127.0.0.1:4222.
	URL         string
	Credentials Credentials
	// Instance is the nonce of this start. Default: a fresh one.
	Instance events.Instance
	// InProcess connects without a socket to a server in this process.
	InProcess nats.InProcessConnProvider
	// Patience is the deadline of a command whose context has none. Default 30 s.
	Patience time.Duration
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Bounds of the connection.
const (
	defaultPatience = 30 * time.Second
	connectTimeout  = 5 * time.Second
	drainTimeout    = 5 * time.Second
	// reconnectMin and reconnectMax bound the wait between tries to reconnect; the
	// wait doubles and has a jitter of a half.
	reconnectMin = 100 * time.Millisecond
	reconnectMax = 2 * time.Second
)

// Conn is a connected principal instance. Close it when done.
type Conn struct {
	cfg      Config
	nc       *nats.Conn
	instance events.Instance
	logger   *slog.Logger

	calls   calls
	waiters waiters // of reconnects
	closed  chan struct{}
}

// Connect connects and authenticates. The context bounds the first connection only;
// later ones are made again for ever. It returns an error wrapping
// [nats.ErrAuthorization] when the bus does not know the key.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	if err := cfg.Credentials.validate(); err != nil {
		return nil, fmt.Errorf("connect: credentials: %w", err)
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Instance == "" {
		cfg.Instance = events.Instance(events.NewID())
	}
	c := &Conn{cfg: cfg, instance: cfg.Instance, logger: cfg.Logger, closed: make(chan struct{})}
	c.calls.pending = make(map[string]*call)
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	if err := c.dial(ctx, opts); err != nil {
		return nil, fmt.Errorf("connect to %s as %s: %w", c.address(), cfg.Credentials.Principal.Name, err)
	}
	if err := c.calls.listen(c); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("connect to %s: subscribe to answers: %w", c.address(), err)
	}
	return c, nil
}

func (c *Conn) address() string {
	if c.cfg.InProcess != nil {
		return "the bus in this process"
	}
	return c.cfg.URL
}

// dial makes the first connection, giving up when ctx ends.
func (c *Conn) dial(ctx context.Context, opts []nats.Option) error {
	type result struct {
		nc  *nats.Conn
		err error
	}
	made := make(chan result, 1)
	go func() {
		nc, err := nats.Connect(c.cfg.URL, opts...)
		made <- result{nc, err}
	}()
	select {
	case r := <-made:
		c.nc = r.nc
		return r.err
	case <-ctx.Done():
		go func() { // the dial itself is bounded by connectTimeout
			if r := <-made; r.nc != nil {
				r.nc.Close()
			}
		}()
		return context.Cause(ctx)
	}
}

func (c *Conn) options() ([]nats.Option, error) {
	pair, err := nkeys.FromSeed(c.cfg.Credentials.Seed)
	if err != nil {
		return nil, fmt.Errorf("connect: read seed: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("connect: read seed: %w", err)
	}
	p := c.cfg.Credentials.Principal
	opts := []nats.Option{
		nats.Nkey(public, pair.Sign), nats.Name(string(p.Name)),
		nats.CustomInboxPrefix(events.InboxPrefix(p.Profile, p.Name)),
		nats.Timeout(connectTimeout), nats.DrainTimeout(drainTimeout),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay),
		nats.PermissionErrOnSubscribe(true), nats.ErrorHandler(c.asyncError),
		nats.ReconnectHandler(func(*nats.Conn) { c.logger.Info("reconnected"); c.waiters.wake() }),
		nats.DisconnectErrHandler(c.disconnected),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed); c.waiters.wake() }),
	}
	if c.cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c.cfg.InProcess))
	}
	return opts, nil
}

func reconnectDelay(attempts int) time.Duration {
	d := reconnectMax
	if attempts < 5 {
		d = min(reconnectMin<<attempts, reconnectMax)
	}
	return d/2 + time.Duration(rand.Int64N(int64(d/2)))
}

func (c *Conn) disconnected(_ *nats.Conn, err error) {
	if err != nil {
		c.logger.Warn("connection to the bus lost", "error", err)
	}
}

// asyncError takes what the server says without being asked. A permission error on a
// publish ends the call that made it; slow consumers look for what they missed.
func (c *Conn) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		c.waiters.wake()
	case errors.Is(err, nats.ErrPermissionViolation):
		if !c.calls.forbid(err) {
			c.logger.Error("the bus refused", "error", err)
		}
	default:
		c.logger.Error("connection error", "error", err)
	}
}

// Principal returns who is connected.
func (c *Conn) Principal() events.Principal { return c.cfg.Credentials.Principal }

// Instance returns the nonce of this start.
func (c *Conn) Instance() events.Instance { return c.instance }

// NATS returns the connection, for subjects this package has no word for. It is closed
// by [Conn.Close].
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Close sends what is buffered, bounded, and closes the connection. It is idempotent.
func (c *Conn) Close() error {
	if c.nc.IsClosed() {
		return nil
	}
	if c.nc.IsReconnecting() { // nobody is there to drain to
		c.nc.Close()
	} else if err := c.nc.Drain(); err != nil && !errors.Is(err, nats.ErrConnectionDraining) && !errors.Is(err, nats.ErrConnectionClosed) {
		c.nc.Close()
	}
	select {
	case <-c.closed:
	case <-time.After(drainTimeout + time.Second):
		c.nc.Close()
		<-c.closed
	}
	return nil
}

// waiters wakes everybody who asked to know of the next reconnect, slow consumer
// report or close.
type waiters struct {
	mu sync.Mutex
	c  chan struct{}
}

// next returns a channel that is closed at the next wake.
func (w *waiters) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.c == nil {
		w.c = make(chan struct{})
	}
	return w.c
}

func (w *waiters) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.c != nil {
		close(w.c)
		w.c = nil
	}
}
