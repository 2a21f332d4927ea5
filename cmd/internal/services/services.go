package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/shellhost"

	"keryx/cmd/internal/run"
	"keryx/internal/cli"
)

// Dial connects a principal.
type Dial func(ctx context.Context) (*client.Conn, error)

// dialFor is how long a process waits for its bus to be started.
const dialFor = 30 * time.Second

// Remote dials a bus by URL. A bus that is not there yet is waited for; one that refuses
// is not.
func Remote(url string, creds client.Credentials, log *slog.Logger) Dial {
	return func(ctx context.Context) (*client.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialFor)
		defer cancel()
		pause := time.NewTicker(250 * time.Millisecond)
		defer pause.Stop()
		for told := false; ; told = true {
			c, err := client.Connect(ctx, client.Config{URL: url, Credentials: creds, Logger: log})
			if err == nil || !errors.Is(err, nats.ErrNoServers) {
				return c, err
			}
			if !told {
				log.Warn("no bus there yet; trying again", "url", url)
			}
			select {
			case <-pause.C:
			case <-ctx.Done():
				return nil, err
			}
		}
	}
}

// ShellHost runs the built-in host.
func ShellHost(dial Dial, log *slog.Logger) *run.Principal {
	return &run.Principal{Name: "shell host", Dial: dial, Serve: func(ctx context.Context, c *client.Conn) error {
		return c.ServeHost(ctx, client.HostConfig{Handle: shellhost.Handler(log), Logger: log})
	}}
}

// Chat holds a conversation; its end is the app's. operator connects whoever sits at it, if
// that is the operator; else it is nil.
func Chat(dial, operator Dial, cfg gateway.Config, conv gateway.Conversation) *run.Principal {
	return &run.Principal{Name: "chat", Dial: dial, Serve: func(ctx context.Context, c *client.Conn) (err error) {
		cfg.Conn = c
		if operator != nil {
			if cfg.Operator, err = operator(ctx); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, cfg.Operator.Close()) }()
		}
		err = gateway.Hold(ctx, cfg, conv)
		if errors.Is(err, gateway.ErrNotDone) {
			return &cli.ExitError{Code: cli.ExitFailure} // each was told as it happened
		}
		return err
	}}
}

// Target is the terminal target of an executor.
func Target(name, cwd string) (events.TargetSpec, error) {
	spec := events.TargetSpec{Name: events.TargetName(name), Kind: "terminal", Cwd: cwd, Shell: "/bin/sh"}
	if err := spec.Name.Validate(); err != nil {
		return spec, &cli.UsageError{Err: err}
	}
	return spec, nil
}

// NeedRole refuses credentials of another role.
func NeedRole(file string, c client.Credentials, roles ...events.Role) error {
	for _, r := range roles {
		if c.Principal.Role == r {
			return nil
		}
	}
	return events.Errorf(events.CodeForbidden, "%s has the role %s; %s is needed", file, c.Principal.Role, oneOf(roles))
}

func oneOf(roles []events.Role) string {
	text := ""
	for i, r := range roles {
		if i > 0 {
			text += " or "
		}
		text += fmt.Sprint(r)
	}
	return text
}
