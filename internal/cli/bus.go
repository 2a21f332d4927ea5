package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/node"
)

// Bus says how to reach a bus: by directory, or by URL and credentials.
type Bus struct {
	Dir     string
	URL     string
	Creds   string
	Profile string

	offline bool
}

// Offline reports whether the connection at hand opened the store itself, because no bus
// runs: what is on record can be read and added to, and nothing moves by itself.
func (b *Bus) Offline() bool { return b.offline }

// NotRunning returns the refusal of what needs a running bus; otherwise says what follows
// from there being none, and what to do.
func (b *Bus) NotRunning(otherwise string) error {
	return events.Errorf(events.CodeUnavailable, "no bus runs on %s, so %s", b.Dir, otherwise)
}

// heldFor is how long a command waits for another one that has opened the store.
const heldFor = 5 * time.Second

// DefaultDir returns $XDG_STATE_HOME/keryx, or ~/.local/state/keryx.
func DefaultDir() string {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "keryx")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "keryx-state" // a user without a home: below the working directory
	}
	return filepath.Join(home, ".local", "state", "keryx")
}

// Flags adds the flags that say how to reach a bus.
func (b *Bus) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&b.Dir, "dir", DefaultDir(), "bus directory")
	f.StringVar(&b.URL, "url", "", "reach a bus by its URL instead of its directory; needs --creds")
	f.StringVar(&b.Creds, "creds", "", "credentials file for --url")
	f.StringVar(&b.Profile, "profile", "default", "profile to work in; with --creds that of the credentials")
}

// ProfileName returns the checked profile.
func (b *Bus) ProfileName() (events.Profile, error) {
	p := events.Profile(b.Profile)
	if err := p.Validate(); err != nil {
		return "", &UsageError{err}
	}
	return p, nil
}

// Connect connects to the bus. The returned function closes all that it opened and must
// be called.
func (b *Bus) Connect(ctx context.Context, log *slog.Logger) (*client.Conn, func() error, error) {
	switch {
	case b.URL != "" && b.Creds != "":
		return b.remote(ctx, log)
	case b.URL != "" || b.Creds != "":
		return nil, nil, Usagef("--url and --creds go together")
	}
	profile, err := b.ProfileName()
	if err != nil {
		return nil, nil, err
	}
	return b.local(ctx, profile, log)
}

func (b *Bus) remote(ctx context.Context, log *slog.Logger) (*client.Conn, func() error, error) {
	creds, err := client.ReadCredentials(b.Creds)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.Connect(ctx, client.Config{URL: b.URL, Credentials: creds, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}

// local asks the running bus, or opens the store when none runs. In between, a bus that
// is just starting or ending, or another command, may hold the store: it tries again.
func (b *Bus) local(ctx context.Context, profile events.Profile, log *slog.Logger) (*client.Conn, func() error, error) {
	if err := b.exists(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, heldFor)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	var last *broker.HeldError
	for {
		c, done, err := b.granted(ctx, profile, log)
		b.offline = errors.Is(err, broker.ErrNotRunning)
		if b.offline {
			c, done, err = node.OpenOffline(ctx, b.Dir, profile, log)
		}
		var held *broker.HeldError
		switch {
		case errors.As(err, &held):
			last = held
		case last != nil && timedOut(err):
			return nil, nil, last // the time was over before it could be tried again
		default:
			return c, done, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return nil, nil, err
			}
			return nil, nil, context.Cause(ctx)
		}
	}
}

// timedOut reports whether an attempt had no time left. A dialer can notice that before
// its context does.
func timedOut(err error) bool {
	var slow net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}

// exists refuses a directory that has never been a bus's: reading creates nothing.
func (b *Bus) exists() error {
	_, err := os.Stat(b.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return events.Errorf(events.CodeUnavailable, "there is no bus directory %s", b.Dir)
	}
	if err != nil {
		return fmt.Errorf("look at bus directory: %w", err)
	}
	return nil
}

func (b *Bus) granted(ctx context.Context, profile events.Profile, log *slog.Logger) (*client.Conn, func() error, error) {
	grant, err := broker.DialOperator(ctx, b.Dir, profile)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.Connect(ctx, client.Config{URL: grant.URL, Credentials: grant.Credentials, Logger: log})
	if err != nil {
		return nil, nil, errors.Join(err, grant.Close())
	}
	// A bus that starts anew on the directory has another address and another key: what
	// waits for the old one would wait in vain.
	var watch sync.WaitGroup
	watch.Go(func() {
		grant.Wait()
		_ = c.Close() // whoever uses it is told that it is closed
	})
	return c, func() error {
		err := errors.Join(c.Close(), grant.Close())
		watch.Wait()
		return err
	}, nil
}

// WithRunning is [Bus.With] for what only a running bus can do or go on with: it never
// opens the store itself, in which nothing new could come, and which would keep a bus from
// starting. Without a bus it fails at once with [Bus.NotRunning].
func (b *Bus) WithRunning(ctx context.Context, log *slog.Logger, otherwise string, f func(*client.Conn) error) error {
	if b.URL != "" || b.Creds != "" {
		return b.With(ctx, log, f)
	}
	profile, err := b.ProfileName()
	if err != nil {
		return err
	}
	if err := b.exists(); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, heldFor)
	defer cancel()
	c, done, err := b.granted(asking, profile, log)
	if errors.Is(err, broker.ErrNotRunning) {
		return b.NotRunning(otherwise)
	}
	if err != nil {
		return err
	}
	return errors.Join(f(c), done())
}

// With connects, runs f and closes.
func (b *Bus) With(ctx context.Context, log *slog.Logger, f func(*client.Conn) error) error {
	c, done, err := b.Connect(ctx, log)
	if err != nil {
		return err
	}
	return errors.Join(f(c), done())
}
