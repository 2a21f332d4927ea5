package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"keryx/events"
)

// Bounds of the connection.
const (
	connectTimeout = 5 * time.Second
	drainTimeout   = 5 * time.Second
	// reconnectMin and reconnectMax bound the wait between tries to reconnect; the
	// wait doubles and has a jitter of a half.
	reconnectMin = 100 * time.Millisecond
	reconnectMax = 2 * time.Second
	// pingEvery finds a dead peer within three times itself.
	pingEvery = 5 * time.Second
)

func (c *Conn) dial(ctx context.Context) error {
	d := &dialer{ctx: ctx, inProcess: c.cfg.InProcess}
	opts, err := c.options(d)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, d.abort)
	c.nc, err = nats.Connect(c.cfg.URL, opts...)
	stop()
	switch {
	case err == nil && ctx.Err() != nil:
		c.nc.Close()
		return context.Cause(ctx)
	case err == nil:
		d.established()
		return nil
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), err)
	case isAuthError(err):
		return fmt.Errorf("%w: %w", events.Errorf(events.CodeForbidden, "the bus does not accept these credentials"), err)
	}
	return fmt.Errorf("%w: %w", events.Errorf(events.CodeUnavailable, "no bus answers there"), err)
}

func isAuthError(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked)
}

func (c *Conn) options(d *dialer) ([]nats.Option, error) {
	pair, err := nkeys.FromSeed(c.cfg.Credentials.Seed)
	if err != nil {
		return nil, fmt.Errorf("read seed: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("read seed: %w", err)
	}
	p := c.Principal()
	opts := []nats.Option{
		nats.Nkey(public, pair.Sign), nats.Name(string(p.Name)),
		nats.CustomInboxPrefix(events.InboxPrefix(p.Profile, p.Name)),
		nats.Timeout(connectTimeout), nats.DrainTimeout(drainTimeout), nats.PingInterval(pingEvery),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay), nats.SetCustomDialer(d),
		nats.ErrorHandler(c.asyncError), nats.DisconnectErrHandler(c.disconnected),
		nats.ReconnectHandler(func(*nats.Conn) { c.logger.Info("connected to the bus again"); c.again.fire() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed); c.again.fire() }),
	}
	if c.cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(d))
	}
	return opts, nil
}

func reconnectDelay(attempts int) time.Duration {
	d := reconnectMax
	if attempts < 5 {
		d = min(reconnectMin<<attempts, reconnectMax)
	}
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

func (c *Conn) disconnected(_ *nats.Conn, err error) {
	if err != nil {
		c.logger.Warn("connection to the bus lost", "error", err)
	}
}

// dialer makes the connections; the first one ends with a context.
type dialer struct {
	inProcess nats.InProcessConnProvider

	mu   sync.Mutex
	ctx  context.Context // of the first connection; nil once it stands
	conn net.Conn
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	ctx := d.ctx
	d.mu.Unlock()
	if ctx == nil {
		ctx = context.Background()
	}
	nd := net.Dialer{Timeout: connectTimeout}
	conn, err := nd.DialContext(ctx, network, address)
	return d.keep(conn, err)
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *dialer) InProcessConn() (net.Conn, error) { return d.keep(d.inProcess.InProcessConn()) }

func (d *dialer) keep(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil {
		return conn, nil
	}
	if d.ctx.Err() != nil {
		return nil, errors.Join(context.Cause(d.ctx), conn.Close())
	}
	d.conn = conn
	return conn, nil
}

// abort breaks a first connection that is still being made.
func (d *dialer) abort() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close() // what matters is that its reader ends
	}
}

func (d *dialer) established() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx, d.conn = nil, nil
}
