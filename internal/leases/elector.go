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

const (
	// standbyPoll is how often a standby looks without being told of a change.
	standbyPoll = 500 * time.Millisecond
	// takeoverMargin is how much longer than its ttl a standby waits for a renewal. The
	// holder's trust ends a tenth of the ttl before the ttl does.
	takeoverMargin = 500 * time.Millisecond
	// retryRenewal is the pause after a renewal without an answer.
	retryRenewal = 100 * time.Millisecond
)

// ElectorConfig says who stands for which key.
type ElectorConfig struct {
	Key      events.LeaseKey
	Holder   events.PrincipalName
	Instance events.Instance
	// TTL of the lease. At least 2 s.
	TTL time.Duration
	// Generation of the store, the first part of the fence. Default 1.
	Generation uint64
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
	store bucket

	// what a standby has observed: the entry and since when it is unchanged.
	seen  entry
	since time.Duration
}

// NewElector returns an elector that does nothing yet.
func NewElector(s *Store, cfg ElectorConfig) (*Elector, error) {
	if s == nil {
		return nil, errors.New("leases: no store")
	}
	return newElector(s, cfg)
}

func newElector(s bucket, cfg ElectorConfig) (*Elector, error) {
	if cfg.TTL < 2*time.Second {
		return nil, fmt.Errorf("elector for %s: a ttl of %v is below 2 s", cfg.Key, cfg.TTL)
	}
	if cfg.Generation == 0 {
		cfg.Generation = 1
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
	changed, stop, err := e.store.watch(e.cfg.Key)
	if err != nil {
		return err
	}
	defer stop()
	for ctx.Err() == nil {
		held, until, err := e.try(ctx)
		if err != nil && ctx.Err() == nil {
			e.cfg.Logger.Warn("stand for the lease", "key", e.cfg.Key, "error", err)
		}
		if !held {
			e.standBy(ctx, changed)
			continue
		}
		if err := e.term(ctx, until, lead); err != nil {
			return err
		}
	}
	return nil
}

// standBy waits until it is worth another try: the lease has changed, or may be free.
func (e *Elector) standBy(ctx context.Context, changed <-chan struct{}) {
	wait := standbyPoll
	if e.seen.record.State == events.LeaseHeld {
		wait = min(wait, max(e.freeAt()-e.cfg.Clock(), time.Millisecond))
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-t.C:
	}
}

// freeAt is when the observed record will have been unchanged long enough.
func (e *Elector) freeAt() time.Duration { return e.since + ttlOf(e.seen.record) + takeoverMargin }

// try takes the lease if it is free; until is when trust in it ends.
func (e *Elector) try(ctx context.Context) (held bool, until time.Duration, err error) {
	cur, err := e.store.read(ctx, e.cfg.Key)
	if err != nil {
		return false, 0, err
	}
	asked := e.cfg.Clock()
	if cur != e.seen || e.since == 0 {
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

// free reports whether an entry may be taken: ended, this elector's own from a try whose
// answer was lost, or unchanged for long enough.
func (e *Elector) free(cur entry, now time.Duration) bool {
	switch {
	case cur.record.State != events.LeaseHeld, e.mine(cur):
		return true
	case e.cfg.SoleOwner && cur.record.Holder == e.cfg.Holder:
		return true
	}
	return now >= e.freeAt()
}

func (e *Elector) mine(cur entry) bool {
	r := cur.record
	return r.State == events.LeaseHeld && r.Holder == e.cfg.Holder && r.Instance == e.cfg.Instance
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
	next := e.renewAt(e.cfg.Clock())
	for e.sleepUntil(ctx, min(next, until)) {
		asked := e.cfg.Clock()
		if asked >= until {
			e.cfg.Logger.Error("the lease ran out", "key", e.cfg.Key)
			return
		}
		now, err := e.renew(ctx, until-asked)
		switch {
		case err == nil:
			e.seen, until, next = now, e.trust(asked), e.renewAt(asked)
		case errors.Is(err, errConflict) && e.mine(now): // a renewal whose answer was lost
			e.seen, next = now, asked
		case errors.Is(err, errConflict):
			e.cfg.Logger.Error("the lease was taken", "key", e.cfg.Key, "holder", now.record.Holder)
			return
		case ctx.Err() == nil:
			e.cfg.Logger.Warn("renew the lease", "key", e.cfg.Key, "error", err)
			next = e.cfg.Clock() + retryRenewal
		}
	}
}

// renewAt is a third of the ttl after a time, with a jitter of a fifth of that.
func (e *Elector) renewAt(asked time.Duration) time.Duration {
	every := e.cfg.TTL / 3
	return asked + every - time.Duration(rand.Int64N(int64(every/5)))
}

// sleepUntil waits for the clock, in short steps, because timers do not count what the
// machine slept. It reports false when ctx ended.
func (e *Elector) sleepUntil(ctx context.Context, at time.Duration) bool {
	for ctx.Err() == nil {
		left := at - e.cfg.Clock()
		if left <= 0 {
			return true
		}
		t := time.NewTimer(min(left, time.Second))
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
	return false
}

func (e *Elector) renew(ctx context.Context, within time.Duration) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rec := e.record()
	rec.Fence = e.seen.fence(e.cfg.Generation)
	return e.store.write(ctx, e.cfg.Key, e.seen.revision, rec)
}

// release lets a standby take over at once; a lease that was taken meanwhile is left.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	e.since = 0
	rec := e.record()
	rec.State, rec.Fence, rec.Reason = events.LeaseReleased, e.seen.fence(e.cfg.Generation), "released by its holder"
	for range casTries {
		now, err := e.store.write(ctx, e.cfg.Key, e.seen.revision, rec)
		if errors.Is(err, errConflict) && e.mine(now) { // behind a renewal that was cut off
			e.seen = now
			continue
		}
		if err != nil && !errors.Is(err, errConflict) {
			e.cfg.Logger.Warn("release the lease", "key", e.cfg.Key, "error", err)
		}
		return
	}
}
