package execution

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"keryx/events"
)

const (
	// tryFor is how long one command waits for its answer; a new one follows.
	tryFor     = time.Minute
	tellPause  = 50 * time.Millisecond
	tellPauses = 15 * time.Second
)

// insist sends a command until it is answered: over restarts of the bus and whatever
// may pass by itself. It gives up when ctx ends, on a refusal that stands, and on a
// closed connection.
func insist(ctx context.Context, bus Bus, logger *slog.Logger, t events.Type, data, answer any) error {
	for pause := tellPause; ; pause = min(2*pause, tellPauses) {
		err := try(ctx, bus, t, data, answer)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", t.Short(), context.Cause(ctx))
		case final(err):
			return err
		}
		logger.Warn("the bus does not answer yet", "command", t.Short(), "error", err)
		if err := sleep(ctx, pause/2+rand.N(pause)); err != nil {
			return fmt.Errorf("%s: %w", t.Short(), err)
		}
	}
}

func try(ctx context.Context, bus Bus, t events.Type, data, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	return bus.Do(ctx, t, data, answer)
}

// report tells the bus a fact about a command until it takes it.
func (s *service) report(ctx context.Context, t events.Type, id events.ExecID, data any) {
	ctx, cancel := context.WithTimeout(ctx, reportFor)
	defer cancel()
	err := insist(ctx, s.bus, s.cfg.Logger, t, data, nil)
	switch {
	case err == nil:
	case events.CodeOf(err) == events.CodeAlreadyEnded:
		// The bus gave the command up meanwhile; its word stands.
		s.cfg.Logger.Warn("the exec had ended before", "command", t.Short(), "exec", id, "error", err)
	default:
		s.cfg.Logger.Error("report on an exec", "command", t.Short(), "exec", id, "error", err)
	}
}
