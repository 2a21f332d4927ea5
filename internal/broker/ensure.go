package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// StreamError says that the store holds a stream whose configuration is not the one the
// bus needs and cannot be changed in place.
type StreamError struct {
	Stream string
	Err    error // the server's refusal
}

// Error implements error.
func (e *StreamError) Error() string {
	return fmt.Sprintf("stream %s is configured in a way this bus cannot use or repair: %v", e.Stream, e.Err)
}

// Unwrap returns the server's refusal.
func (e *StreamError) Unwrap() error { return e.Err }

// ensureStreams creates what is missing and repairs what differs. The streams do not
// depend on each other, so they are made at the same time.
func ensureStreams(ctx context.Context, nc *nats.Conn, maxStore int64, l *slog.Logger) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open stream API: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, cfg := range streamConfigs(maxStore) {
		group.Go(func() error { return ensureStream(ctx, js, cfg, l) })
	}
	return group.Wait()
}

// ensureStream relies on a create being answered well for a stream that exists just so.
func ensureStream(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig, l *slog.Logger) error {
	_, err := js.CreateStream(ctx, cfg)
	if err == nil {
		return nil
	}
	if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("create stream %s: %w", cfg.Name, err)
	}
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		return &StreamError{Stream: cfg.Name, Err: err}
	}
	l.Warn("stream was configured differently; repaired", "stream", cfg.Name)
	return nil
}
