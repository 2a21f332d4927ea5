package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Config says how to connect. Credentials, and URL or InProcess, are needed.
type Config struct {
	// URL of the bus, e.g. nats://127.0.0.1:4222.
	URL         string
	Credentials Credentials
	// Instance is the nonce of this start, a ULID. Default: a fresh one.
	Instance events.Instance
	// InProcess connects without a socket to a server in this process.
	InProcess nats.InProcessConnProvider
	// Patience is the deadline of a command whose context has none. Default 30 s.
	Patience time.Duration
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

func (cfg *Config) complete() error {
	if err := cfg.Credentials.validate(); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if cfg.URL == "" && cfg.InProcess == nil {
		return errors.New("neither URL nor InProcess is set")
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
	if !events.IsULID(string(cfg.Instance)) {
		return fmt.Errorf("instance %q is not a ULID: %w", cfg.Instance, events.ErrBadID)
	}
	return nil
}

const defaultPatience = 30 * time.Second

// Conn is a connected principal instance. Close it when done.
type Conn struct {
	cfg    Config
	nc     *nats.Conn
	logger *slog.Logger

	calls   calls
	refused refusals
	// again fires when the connection was made anew or has ended: what was under way
	// may be lost.
	again   signal
	inboxes sync.Map // *nats.Subscription to *inbox
	closed  chan struct{}
}

// Connect connects and authenticates. The context bounds the first connection only;
// later ones are made again for ever, unless the bus no longer accepts the key.
//
// The error has code unavailable if no bus answers, and code forbidden if it does not
// accept the credentials; the error of package nats is in its chain too.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &Conn{cfg: cfg, logger: cfg.Logger, closed: make(chan struct{})}
	if err := c.dial(ctx); err != nil {
		return nil, fmt.Errorf("connect to %s as %s: %w", c.address(), cfg.Credentials.Principal.Name, err)
	}
	if err := c.calls.listen(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: subscribe to answers: %w", c.address(), err), c.Close())
	}
	return c, nil
}

func (c *Conn) address() string {
	if c.cfg.InProcess != nil {
		return "the bus in this process"
	}
	return c.cfg.URL
}

// Principal returns who is connected.
func (c *Conn) Principal() events.Principal { return c.cfg.Credentials.Principal }

// Instance returns the nonce of this start.
func (c *Conn) Instance() events.Instance { return c.cfg.Instance }

// NATS returns the connection, for subjects this package has no word for. It is closed
// by [Conn.Close].
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Close sends what is buffered, for 5 s at most, and closes the connection. Commands
// under way end with an error. It is idempotent and always returns nil, so that it can
// stand where an io.Closer is wanted.
func (c *Conn) Close() error {
	if c.nc.IsReconnecting() { // nobody is there to drain to
		c.nc.Close()
	} else if err := c.nc.Drain(); err != nil && !errors.Is(err, nats.ErrConnectionDraining) {
		c.nc.Close() // does nothing if it is closed
	}
	bound := time.NewTimer(drainTimeout + time.Second)
	defer bound.Stop()
	select {
	case <-c.closed:
	case <-bound.C:
		c.nc.Close()
		<-c.closed
	}
	return nil
}
