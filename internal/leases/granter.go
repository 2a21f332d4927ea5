package leases

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/alarm"
)

// Margins between a holder's end of trust and the granter's expiry (package comment).
const (
	ownMargin      = 250 * time.Millisecond // since a write of the granter's own
	observedMargin = time.Second            // since it began to observe a record
)

// casTries is how often a write is tried over another granter's.
const casTries = 4

// Config of a granter. Zero fields mean the default.
type Config struct {
	// Generation of the store, the first part of each fence.
	Generation uint64
	// MinTTL is the shortest ttl granted. Default 2 s.
	MinTTL time.Duration
	// DefaultTTL is granted when none is asked for. Default 15 s.
	DefaultTTL time.Duration
	// MaxTTL is the longest ttl granted. Default 1 h.
	MaxTTL time.Duration
	// Clock defaults to client.BootTime.
	Clock func() time.Duration
	// OnExpired is called, on the granter's goroutine, after a lease has expired, and when
	// the holder of a revoked one may not act any more without having given it back. It
	// must not wait for I/O.
	OnExpired func(events.LeaseKey, events.LeaseRecord)
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Granter is the granting side. It is safe for concurrent use; [Granter.Load] first,
// then [Granter.Run] for as long as it grants.
type Granter struct {
	cfg   Config
	store bucket
	due   *alarm.Queue[*lease]

	mu     sync.Mutex
	leases map[events.LeaseKey]*lease
}

// lease is what the granter knows of one key. busy is held over a write of it.
type lease struct {
	key  events.LeaseKey
	busy sync.Mutex
	gone bool // forgotten; guarded by busy

	mu    sync.Mutex
	entry entry
	until time.Duration // on the granter's clock: until when the holder may act, at most
	seen  time.Duration // on the granter's clock: when the entry changed
	told  bool          // of a revoked one: that its holder's time is over
}

func (l *lease) get() entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry
	e.until = l.until
	return e
}

// endLate reports, once, that the time of the holder of a revoked lease is over.
func (l *lease) endLate() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.told
	l.told = true
	return first
}

func (l *lease) age(now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now - l.seen
}

func (l *lease) observed(now, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.told = now, false
	if until != 0 {
		l.until = until
	}
}

func (l *lease) set(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry = e
}

// NewGranter returns a granter over a store.
func NewGranter(s *Store, cfg Config) (*Granter, error) {
	if s == nil {
		return nil, errors.New("leases: no store")
	}
	return newGranter(s, cfg), nil
}

func newGranter(s bucket, cfg Config) *Granter {
	if cfg.MinTTL <= 0 {
		cfg.MinTTL = 2 * time.Second
	}
	if cfg.DefaultTTL <= 0 {
		cfg.DefaultTTL = 15 * time.Second
	}
	if cfg.MaxTTL <= 0 {
		cfg.MaxTTL = time.Hour
	}
	if cfg.Clock == nil {
		cfg.Clock = client.BootTime
	}
	if cfg.OnExpired == nil {
		cfg.OnExpired = func(events.LeaseKey, events.LeaseRecord) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Granter{cfg: cfg, store: s, due: alarm.New[*lease](), leases: make(map[events.LeaseKey]*lease)}
}

// Load reads what is on record. A lease found held is observed for its whole ttl
// before it can expire, however long the bus was away.
func (g *Granter) Load(ctx context.Context) error {
	return g.store.all(ctx, func(k events.LeaseKey, e entry) {
		if k.Kind == events.LeaseBus {
			return // the elector's own
		}
		l := g.lease(k)
		l.set(e)
		g.observe(l, observedMargin)
	})
}

// observe sets when a held record will have been unchanged for its ttl and grace, and
// when an ended one can be forgotten. A lease that this granter revoked keeps the time
// that its last renewal gave it.
func (g *Granter) observe(l *lease, margin time.Duration) {
	now, e := g.cfg.Clock(), l.get()
	until := now + holdOf(e.record) + margin
	switch e.record.State {
	case events.LeaseHeld:
		l.observed(now, until)
		g.due.Set(l, until)
	case events.LeaseRevoked:
		if margin == ownMargin && e.until != 0 {
			until = e.until
		}
		l.observed(now, until)
		g.due.Set(l, until)
	default:
		l.observed(now, 0)
		g.due.Set(l, now+endedFor(e.record))
	}
}

func (g *Granter) lease(k events.LeaseKey) *lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.leases[k]
	if !ok {
		l = &lease{key: k}
		g.leases[k] = l
	}
	return l
}

// hold returns a key's lease with busy locked.
func (g *Granter) hold(k events.LeaseKey) *lease {
	for {
		l := g.lease(k)
		l.busy.Lock()
		if !l.gone {
			return l
		}
		l.busy.Unlock()
	}
}

// forgetLocked drops what is known of a key; the bucket still knows it. l.busy is held.
func (g *Granter) forgetLocked(l *lease) {
	l.gone = true
	g.due.Set(l, 0)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leases, l.key)
}

// Current returns what is on record for a key, as far as this granter knows.
func (g *Granter) Current(k events.LeaseKey) (events.LeaseRecord, events.Fence, bool) {
	g.mu.Lock()
	l, ok := g.leases[k]
	g.mu.Unlock()
	if !ok {
		return events.LeaseRecord{}, events.Fence{}, false
	}
	e := l.get()
	return e.record, e.fence(g.cfg.Generation), e.record.State != ""
}

// List returns the leases of a profile by key, ended ones as long as they are kept. Their
// ages count from this granter's start at the earliest.
func (g *Granter) List(p events.Profile) []events.LeaseView {
	g.mu.Lock()
	all := make([]*lease, 0, len(g.leases))
	for k, l := range g.leases {
		if k.Profile == p {
			all = append(all, l)
		}
	}
	g.mu.Unlock()
	out, now := make([]events.LeaseView, 0, len(all)), g.cfg.Clock()
	for _, l := range all {
		e := l.get()
		if e.record.State == "" {
			continue
		}
		v := events.LeaseView{Key: l.key, LeaseRecord: e.record, Revision: e.revision}
		v.Fence, v.AgeMS = e.fence(g.cfg.Generation), l.age(now).Milliseconds()
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b events.LeaseView) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return out
}

// Run expires leases until ctx ends, and returns nil then. After a time in which the
// process or the machine stood still it expires nothing before the holders, who could
// not be heard, have had their whole ttl again, as after a start.
func (g *Granter) Run(ctx context.Context) error {
	for {
		l, stalled, ok := g.due.Wait(ctx, g.cfg.Clock)
		if !ok {
			return nil
		}
		if stalled {
			g.cfg.Logger.Warn("the lease granter stood still; all holders get their time again")
			g.observeAgain(l)
			continue
		}
		g.expire(ctx, l)
	}
}

// observeAgain gives every held lease its whole ttl from now; due was just taken off
// the deadlines.
func (g *Granter) observeAgain(due *lease) {
	g.mu.Lock()
	all := slices.Collect(maps.Values(g.leases))
	g.mu.Unlock()
	for _, l := range all {
		if l.get().record.State == events.LeaseHeld || l == due {
			g.observe(l, observedMargin)
		}
	}
}

func (g *Granter) expire(ctx context.Context, l *lease) {
	e, expired := g.tryExpire(ctx, l)
	if expired {
		g.cfg.OnExpired(l.key, e.record)
	}
}

func (g *Granter) tryExpire(ctx context.Context, l *lease) (entry, bool) {
	l.busy.Lock()
	defer l.busy.Unlock()
	e := l.get()
	if l.gone || g.due.Pending(l) {
		return e, false // changed meanwhile
	}
	if e.record.State == events.LeaseRevoked && l.endLate() {
		g.due.Set(l, g.cfg.Clock()+endedFor(e.record))
		return e, true // its holder may not act any more, and did not say so
	}
	if e.record.State != events.LeaseHeld {
		g.forgetLocked(l)
		return e, false
	}
	ended := e.record
	ended.State, ended.Fence, ended.Reason = events.LeaseExpired, e.fence(g.cfg.Generation), "not renewed"
	now, err := g.store.write(ctx, l.key, e.revision, ended)
	switch {
	case errors.Is(err, errConflict): // another granter renewed or ended it
		l.set(now)
		g.observe(l, observedMargin)
		return e, false
	case err != nil:
		g.cfg.Logger.Error("expire a lease", "key", l.key, "error", err)
		g.due.Set(l, g.cfg.Clock()+time.Second)
		return e, false
	}
	l.set(now)
	g.observe(l, ownMargin)
	return e, true
}
