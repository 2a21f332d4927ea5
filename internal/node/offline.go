package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"keryx/client"
	"keryx/events"
)

// OpenOffline opens the store of a bus that is not running and connects an operator
// of the profile to it. The returned function closes both; it must be called. Errors
// are those of [Start].
func OpenOffline(ctx context.Context, dir string, profile events.Profile, logger *slog.Logger) (*client.Conn, func() error, error) {
	n, err := Start(ctx, Config{Dir: dir, Logger: logger, offline: true})
	if err != nil {
		return nil, nil, err
	}
	c, err := n.Connect(ctx, events.Principal{Profile: profile, Name: "operator", Role: events.RoleOperator})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("connect to %s: %w", dir, err), n.Stop(context.WithoutCancel(ctx)))
	}
	return c, func() error {
		const bound = 10 * time.Second
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		defer cancel()
		return errors.Join(c.Close(), n.Stop(stopCtx))
	}, nil
}
