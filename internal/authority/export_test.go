package authority

import (
	"context"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// Gatherer is the gatherer, for tests of what it puts together.
type Gatherer struct{ g *gatherer }

// GatherFrom is how many waiting commits become one batch.
const GatherFrom = gatherFrom

func NewGatherer(log appender) Gatherer {
	return Gatherer{newGatherer(context.Background(), log, newGroup().start)}
}

func (g Gatherer) Append(ctx context.Context, ms []sessionlog.Message) ([]events.Sequence, error) {
	return g.g.append(ctx, ms)
}

// InMemory returns how many sessions have their state in memory.
func (a *Authority) InMemory() int {
	a.mu.Lock()
	t := a.serving
	a.mu.Unlock()
	n := 0
	for l := range t.sessions.all("") {
		if l.view(func(*lifecycle.State) {}) {
			n++
		}
	}
	return n
}

// RecordForgotten puts the removal of a session on record and does nothing more, as if a
// kill came then.
func (a *Authority) RecordForgotten(ctx context.Context, p events.Profile, d events.Forget) error {
	a.mu.Lock()
	t := a.serving
	a.mu.Unlock()
	done := make(chan error, 1)
	l := t.profiles.get(p)
	l.add(0, func(ctx context.Context) {
		done <- l.append(ctx, origin{source: events.Source(p, "op")}, events.TypeSessionForgotten, events.SessionForgotten(d))
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
