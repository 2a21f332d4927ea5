package replay

import (
	"context"
	"fmt"
	"time"
)

// Pace lets as much time pass between two events as there was between them. It is used
// by one replay at a time.
type Pace struct {
	// Speed is how many times faster than it happened; it has to be positive.
	Speed float64
	// MaxPause bounds each pause; 0 for no bound.
	MaxPause time.Duration

	last time.Time // of the event before; zero at the beginning
}

// Validate returns an error about a speed that is none.
func (p *Pace) Validate() error {
	if !(p.Speed > 0) || p.Speed > maxSpeed {
		return fmt.Errorf("a speed of %v: it is more than 0 and at most %g", p.Speed, float64(maxSpeed))
	}
	if p.MaxPause < 0 {
		return fmt.Errorf("a pause of at most %s is none", p.MaxPause)
	}
	return nil
}

// maxSpeed is where a pace shows no more than none does.
const maxSpeed = 1e9

// between returns how long to wait for an event at a time.
func (p *Pace) between(at time.Time) time.Duration {
	last := p.last
	p.last = at
	if last.IsZero() || at.IsZero() {
		return 0
	}
	pause := time.Duration(float64(at.Sub(last)) / p.Speed)
	if p.MaxPause > 0 {
		pause = min(pause, p.MaxPause)
	}
	return max(pause, 0)
}

// wait returns when an event that happened at a time is to be shown; its error is the
// cause of ctx's end.
func (p *Pace) wait(ctx context.Context, at time.Time) error {
	pause := p.between(at)
	if pause == 0 {
		return nil
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
