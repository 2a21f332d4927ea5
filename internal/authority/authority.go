package authority

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/leases"
	"keryx/internal/sessionlog"
)

// Registry tells who a principal is.
type Registry interface {
	Lookup(events.Profile, events.PrincipalName) (events.Principal, bool)
	DefaultHosts(events.Profile) []events.PrincipalName
}

// Config is what an authority works with. Conn, Log, Leases and Registry are needed.
type Config struct {
	// Conn has the full rights of the broker's system user; its owner closes it.
	Conn     *nats.Conn
	Log      *sessionlog.Log
	Leases   *leases.Store
	Registry Registry
	// Generation of the store, the first part of every fence.
	Generation uint64
	// Regressed is set when the store is served although it lost messages; it goes on
	// record in every profile.
	Regressed *events.StoreRegressed
	// Note is told of every sequence written; nil for nobody.
	Note func(events.Sequence)
	// Room refuses what begins anything while it returns an error, which is the answer;
	// what ends or reports is taken all the same. Nil: there always is room.
	Room func() error
	// SoleOwner says that no other authority of this kind can be alive: it would
	// live in a process that has the store's lock, and this one has it.
	SoleOwner bool
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Offline serves commands without timers, leases or hosts: the store was opened
	// by a one-shot command and no other process can be connected.
	Offline bool
	// AuthorityTTL is the ttl of the lease bus.authority. Default 5 s.
	AuthorityTTL time.Duration
	// InterruptGrace is how long a host may take to end an interrupted turn.
	// Default 10 s (design section 5).
	InterruptGrace time.Duration
	// CommandRate is how many commands a second one principal may send, with bursts
	// of as many. Default 10,000.
	CommandRate int
	// UnloadAfter is how long a session does nothing before its state is taken out of
	// memory, to be read again when it is asked for. Default 1 min.
	UnloadAfter time.Duration
	// SweepEvery is how often such sessions are looked for. Default 5 s.
	SweepEvery time.Duration
	// CheckpointEvery is how often the index of sessions is written, if there is anything
	// new: what came since is read at the next start. Default 5 s.
	CheckpointEvery time.Duration
	// Retain is how long the events of an epoch are kept after the next one has begun. 0:
	// for ever.
	Retain time.Duration
	// LaneQueue is how many commands may wait for one session. Default 1,024.
	LaneQueue int
}

func (c *Config) setDefaults() error {
	if c.Conn == nil || c.Log == nil || c.Leases == nil || c.Registry == nil {
		return errors.New("authority: Conn, Log, Leases and Registry must be set")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Note == nil {
		c.Note = func(events.Sequence) {}
	}
	if c.Room == nil {
		c.Room = func() error { return nil }
	}
	c.AuthorityTTL = orDuration(c.AuthorityTTL, 5*time.Second)
	c.InterruptGrace = orDuration(c.InterruptGrace, 10*time.Second)
	c.UnloadAfter = orDuration(c.UnloadAfter, time.Minute)
	c.SweepEvery = orDuration(c.SweepEvery, 5*time.Second)
	c.CheckpointEvery = orDuration(c.CheckpointEvery, 5*time.Second)
	c.CommandRate = orInt(c.CommandRate, 10_000)
	c.LaneQueue = orInt(c.LaneQueue, 1024)
	return nil
}

func orDuration(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

func orInt(n, fallback int) int {
	if n > 0 {
		return n
	}
	return fallback
}

// Authority stands by for the lease bus.authority and serves while it holds it.
type Authority struct {
	cfg      Config
	instance events.Instance
	active   atomic.Bool

	mu       sync.Mutex
	embedded map[events.Principal][]events.Instance
	serving  *term // nil while standing by
}

// New returns an authority that is not running yet.
func New(cfg Config) (*Authority, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	return &Authority{
		cfg: cfg, instance: events.Instance(events.NewID()), embedded: make(map[events.Principal][]events.Instance),
	}, nil
}

// Active reports whether this authority takes commands now. It is safe for
// concurrent use.
func (a *Authority) Active() bool { return a.active.Load() }

// ErrStopped is the cancel cause of a clean stop: sessions that live as long as the
// bus are finalized before [Authority.Run] returns.
var ErrStopped = errors.New("authority stopped")

// Run stands by and serves until ctx ends; it returns nil then. It blocks, and all
// that it started has ended when it returns.
func (a *Authority) Run(ctx context.Context) error {
	if a.cfg.Offline {
		return a.serve(ctx)
	}
	el, err := leases.NewElector(a.cfg.Leases, leases.ElectorConfig{
		Key: events.AuthorityLease, Holder: events.AuthorityName, Instance: a.instance,
		TTL: a.cfg.AuthorityTTL, SoleOwner: a.cfg.SoleOwner, Logger: a.cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("stand for %s: %w", events.AuthorityLease, err)
	}
	return el.Run(ctx, a.serve)
}

// serve is one term: it loads the log, takes commands until ctx ends, and drains.
func (a *Authority) serve(ctx context.Context) error {
	t, err := newTerm(a.cfg)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := t.load(ctx); err != nil {
		return fmt.Errorf("load the log: %w", err)
	}
	if err := t.start(ctx); err != nil {
		t.stop(ctx, false)
		return fmt.Errorf("start serving: %w", err)
	}
	a.setServing(t)
	a.recordLoss(t)
	a.active.Store(true)
	a.cfg.Logger.Info("authority active", "sessions", t.sessions.count(), "took", time.Since(begun).Round(time.Microsecond))
	<-ctx.Done()
	a.active.Store(false)
	a.setServing(nil)
	t.stop(ctx, errors.Is(context.Cause(ctx), ErrStopped))
	return nil
}

// Embed tells that an instance of a principal lives in this very process, which alone
// has the store. Whatever other instance of it holds is a dead process's: it is ended
// now, or as soon as this authority becomes active, without waiting for its leases.
func (a *Authority) Embed(p events.Principal, inst events.Instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.embedded[p] = append(a.embedded[p], inst)
	if a.serving != nil {
		a.serving.buryOthers(p, slices.Clone(a.embedded[p]))
	}
}

func (a *Authority) setServing(t *term) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serving = t
	if t == nil {
		return
	}
	for p, live := range a.embedded {
		t.buryOthers(p, slices.Clone(live))
	}
}

// recordLoss puts an accepted loss on record, once.
func (a *Authority) recordLoss(t *term) {
	if a.cfg.Regressed == nil {
		return
	}
	for _, p := range t.knownProfiles() {
		t.profiles.get(p).appendFact(events.TypeStoreRegressed, *a.cfg.Regressed)
	}
	a.cfg.Regressed = nil
}
