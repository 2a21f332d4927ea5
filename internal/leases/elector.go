package leases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"keryx/client"
	"keryx/events"
)

// ErrLeadershipLost is the cancel cause of a term whose lease could not be renewed.
var ErrLeadershipLost = errors.New("the lease of the active authority was lost")

// standbyPoll is how often a standby looks: a released lease is taken over within it.
const standbyPoll = 250 * time.Millisecond

// ElectorConfig says who stands for which key.
type ElectorConfig struct {
	Key      events.LeaseKey
	Holder   events.PrincipalName
	Instance events.Instance
	// TTL of the lease. At least 2 s.
	TTL time.Duration
	// SoleOwner takes over at once, at the first try, from another instance of the
	// same holder: set it only when that one is known to be dead, because it could
	// only live in the process that had the store's lock.
	SoleOwner bool
	// Clock defaults to client.BootTime, Logger to slog.Default.
	Clock  func() time.Duration
	Logger *slog.Logger
}

// Elector stands for a lease, without a granter.
type Elector struct {
	cfg   ElectorConfig
	store *Store

	// what a standby has observed: the entry and since when it is unchanged.
	seen  entry
	since time.Duration
}

// NewElector returns an elector that does nothing yet.
func NewElector(s *Store, cfg ElectorConfig) (*Elector, error) {
	if cfg.TTL < 2*time.Second {
		return nil, fmt.Errorf("elector for %s: a ttl of %v is below 2 s", cfg.Key, cfg.TTL)
	}
	if cfg.Clock == nil {
		cfg.Clock = client.BootTime
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Elector{cfg: cfg, store: s}, nil
}

// Run stands by until it has the lease, then runs lead with a context that ends, with
// the cause [ErrLeadershipLost], before another could have it; and so on until ctx
// ends. lead must return soon after its context ended. Run returns lead's error, and
// nil when ctx has ended.
func (e *Elector) Run(ctx context.Context, lead func(context.Context) error) error {
	for ctx.Err() == nil {
		held, until, err := e.try(ctx)
		if err != nil && ctx.Err() == nil {
			e.cfg.Logger.Warn("stand for the lease", "key", e.cfg.Key, "error", err)
		}
		if !held {
			pause(ctx, standbyPoll)
			continue
		}
		if err := e.term(ctx, until, lead); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// try takes the lease if it is free; until is when trust in it ends.
func (e *Elector) try(ctx context.Context) (held bool, until time.Duration, err error) {
	asked := e.cfg.Clock()
	cur, err := e.store.read(ctx, e.cfg.Key)
	if err != nil {
		return false, 0, err
	}
	if cur.revision != e.seen.revision || e.since == 0 {
		e.seen, e.since = cur, asked
	}
	if !e.free(cur, asked) {
		return false, 0, nil
	}
	now, err := e.store.write(ctx, e.cfg.Key, cur.revision, e.record())
	if errors.Is(err, errConflict) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	e.seen, e.cfg.SoleOwner = now, false
	return true, e.trust(asked), nil
}

// free reports whether an entry may be taken: ended, or unchanged for its own ttl and
// the margin.
func (e *Elector) free(cur entry, now time.Duration) bool {
	if cur.record.State != events.LeaseHeld {
		return true
	}
	if e.cfg.SoleOwner && cur.record.Holder == e.cfg.Holder {
		return true
	}
	return now-e.since > ttlOf(cur.record)+observedMargin
}

func (e *Elector) record() events.LeaseRecord {
	return events.LeaseRecord{
		State: events.LeaseHeld, Holder: e.cfg.Holder, Instance: e.cfg.Instance, TTLMS: e.cfg.TTL.Milliseconds(),
	}
}

// trust is when to stop after a request that began at a time: a tenth of the ttl
// before anybody else could take over.
func (e *Elector) trust(asked time.Duration) time.Duration { return asked + e.cfg.TTL - e.cfg.TTL/10 }

// term leads while the lease is renewed.
func (e *Elector) term(ctx context.Context, until time.Duration, lead func(context.Context) error) error {
	leading, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	var keeper sync.WaitGroup
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	keeper.Go(func() {
		e.keep(renewing, until)
		lost(ErrLeadershipLost)
	})
	err := lead(leading)
	stop()
	keeper.Wait()
	e.release(context.WithoutCancel(ctx))
	return err
}

// keep renews until ctx ends or trust has run out.
func (e *Elector) keep(ctx context.Context, until time.Duration) {
	for {
		every := e.cfg.TTL / 3
		pause(ctx, min(every-time.Duration(rand.Int64N(int64(every/5))), max(until-e.cfg.Clock(), 0)))
		if ctx.Err() != nil {
			return
		}
		asked := e.cfg.Clock()
		if asked >= until {
			e.cfg.Logger.Error("the lease ran out", "key", e.cfg.Key)
			return
		}
		now, err := e.renew(ctx, until-asked)
		switch {
		case errors.Is(err, errConflict):
			e.cfg.Logger.Error("the lease was taken", "key", e.cfg.Key, "holder", now.record.Holder)
			return
		case err != nil:
			e.cfg.Logger.Warn("renew the lease", "key", e.cfg.Key, "error", err)
			pause(ctx, 100*time.Millisecond)
		default:
			e.seen, until = now, e.trust(asked)
		}
	}
}

func (e *Elector) renew(ctx context.Context, within time.Duration) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rec := e.record()
	rec.Fence = e.seen.fence(1)
	return e.store.write(ctx, e.cfg.Key, e.seen.revision, rec)
}

// release lets a standby take over at once; a lease that was taken meanwhile is left.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rec := e.record()
	rec.State, rec.Fence, rec.Reason = events.LeaseReleased, e.seen.fence(1), "released by its holder"
	if _, err := e.store.write(ctx, e.cfg.Key, e.seen.revision, rec); err != nil && !errors.Is(err, errConflict) {
		e.cfg.Logger.Warn("release the lease", "key", e.cfg.Key, "error", err)
	}
	e.since = 0
}
