package client

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"keryx/events"
)

// Caller sends commands; [Conn] is one.
type Caller interface {
	Do(ctx context.Context, t events.Type, data, answer any) error
}

// KeeperConfig says for whom leases are kept. Caller and Instance are needed.
type KeeperConfig struct {
	Caller   Caller
	Instance events.Instance
	// OnLost is called, on the keeper's goroutine, when a lease was lost; it must not
	// block. [Held.Lost] is closed by then.
	OnLost func(*Held)
	// Clock defaults to [BootTime], Logger to slog.Default.
	Clock  func() time.Duration
	Logger *slog.Logger
}

const (
	// renewBatch is how many leases one command renews.
	renewBatch = 500
	// keeperTick is how often the keeper looks for leases to renew: the shortest ttl
	// is 2 s, so a third of it is several ticks.
	keeperTick = 100 * time.Millisecond
)

// Keeper is the holder's side of leases: it renews each at a third of its ttl, with a
// jitter of a fifth of that, many with one command, and says when one is lost. A lease
// is trusted until its ttl, less a tenth, after the moment before the last request that
// was answered; past that it is lost, whatever the bus would say.
type Keeper struct {
	cfg  KeeperConfig
	mu   sync.Mutex
	held map[events.LeaseKey]*Held
}

// Held is a lease that is kept. Its methods are safe for concurrent use.
type Held struct {
	keeper *Keeper
	key    events.LeaseKey
	fence  events.Fence
	ttl    time.Duration
	lost   chan struct{}

	// guarded by keeper.mu
	until   time.Duration // trusted until
	renewAt time.Duration
	gone    bool
}

// NewKeeper returns a keeper that holds nothing. [Keeper.Run] has to run for as long as
// it shall renew.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Clock == nil {
		cfg.Clock = BootTime
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.OnLost == nil {
		cfg.OnLost = func(*Held) {}
	}
	return &Keeper{cfg: cfg, held: make(map[events.LeaseKey]*Held)}
}

// Acquire asks for a lease and keeps it. The error is *[events.Error] with code
// lease_held while another has it. A ttl of 0 means the bus's default.
func (k *Keeper) Acquire(ctx context.Context, key events.LeaseKey, ttl time.Duration) (*Held, error) {
	asked := k.cfg.Clock()
	var a events.LeaseAnswer
	err := k.cfg.Caller.Do(ctx, events.CmdLeaseAcquire, events.AcquireLease{
		Key: key, Instance: k.cfg.Instance, TTLMS: ttl.Milliseconds(),
	}, &a)
	if err != nil {
		return nil, err
	}
	return k.Adopt(key, a.Fence, time.Duration(a.TTLMS)*time.Millisecond, asked), nil
}

// Adopt keeps a lease that was granted by other means, e.g. a session's at attach.
// asked is the clock before the request that granted it.
func (k *Keeper) Adopt(key events.LeaseKey, fence events.Fence, ttl, asked time.Duration) *Held {
	h := &Held{keeper: k, key: key, fence: fence, ttl: ttl, lost: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.extend(h, asked)
	k.held[key] = h
	return h
}

// extend needs mu held.
func (k *Keeper) extend(h *Held, asked time.Duration) {
	every := h.ttl / 3
	h.until = asked + h.ttl - h.ttl/10
	h.renewAt = asked + every - time.Duration(rand.Int64N(int64(every/5)+1))
}

// Run renews until ctx ends. It blocks; leases are neither released nor lost by its
// end, they just are no longer renewed.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(keeperTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.expire()
		for due := k.due(); len(due) > 0 && ctx.Err() == nil; due = k.due() {
			k.renew(ctx, due)
		}
	}
}

// expire announces the leases whose time of trust is over.
func (k *Keeper) expire() {
	now := k.cfg.Clock()
	k.mu.Lock()
	var past []*Held
	for _, h := range k.held {
		if now >= h.until {
			past = append(past, h)
		}
	}
	k.mu.Unlock()
	for _, h := range past {
		k.lose(h, "not renewed in time")
	}
}

func (k *Keeper) due() []*Held {
	now := k.cfg.Clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []*Held
	for _, h := range k.held {
		if now >= h.renewAt && now < h.until && len(out) < renewBatch {
			out = append(out, h)
		}
	}
	return out
}

// renew renews leases with one command. Its deadline is the earliest end of trust, so
// that a hanging request holds up no other lease beyond its own time.
func (k *Keeper) renew(ctx context.Context, due []*Held) {
	asked := k.cfg.Clock()
	cmd := events.RenewLease{Instance: k.cfg.Instance}
	within := due[0].ttl
	for _, h := range due {
		cmd.Leases = append(cmd.Leases, events.LeaseRef{Key: h.key, Fence: h.fence})
		within = min(within, h.ttl/3)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var a events.LeaseRenewals
	if err := k.cfg.Caller.Do(ctx, events.CmdLeaseRenew, cmd, &a); err != nil {
		k.postpone(due)
		k.cfg.Logger.Warn("renew leases", "count", len(due), "error", err)
		return
	}
	for i, r := range a.Results {
		if i < len(due) {
			k.renewed(due[i], r, asked)
		}
	}
}

// postpone tries again soon what could not be asked.
func (k *Keeper) postpone(due []*Held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range due {
		h.renewAt = k.cfg.Clock() + keeperTick
	}
}

func (k *Keeper) renewed(h *Held, r events.LeaseRenewal, asked time.Duration) {
	switch {
	case r.Error == nil:
		k.mu.Lock()
		if !h.gone {
			k.extend(h, asked)
		}
		k.mu.Unlock()
	case errors.Is(r.Error, events.ErrOf(events.CodeLeaseLost)),
		errors.Is(r.Error, events.ErrOf(events.CodeUnknownSession)),
		errors.Is(r.Error, events.ErrOf(events.CodeForbidden)):
		k.lose(h, r.Error.Message)
	default:
		k.postpone([]*Held{h})
		k.cfg.Logger.Warn("renew lease", "key", h.key, "error", r.Error)
	}
}

func (k *Keeper) lose(h *Held, why string) {
	if !k.forget(h) {
		return
	}
	k.cfg.Logger.Warn("lease lost", "key", h.key, "reason", why)
	close(h.lost)
	k.cfg.OnLost(h)
}

// forget stops keeping h; it reports false if that was done before.
func (k *Keeper) forget(h *Held) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.gone {
		return false
	}
	h.gone = true
	if k.held[h.key] == h {
		delete(k.held, h.key)
	}
	return true
}

// Key returns the lease's key.
func (h *Held) Key() events.LeaseKey { return h.key }

// Fence returns the lease fence.
func (h *Held) Fence() events.Fence { return h.fence }

// Lost is closed when the lease is lost. It is not closed by Release or Forget.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// Valid reports whether the lease may be trusted now. Check it right before each act
// that needs the lease.
func (h *Held) Valid() bool {
	now := h.keeper.cfg.Clock()
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return !h.gone && now < h.until
}

// Forget stops keeping the lease without giving it back.
func (h *Held) Forget() { h.keeper.forget(h) }

// Release stops keeping the lease and gives it back.
func (h *Held) Release(ctx context.Context) error {
	h.keeper.forget(h)
	return h.keeper.cfg.Caller.Do(ctx, events.CmdLeaseRelease, events.ReleaseLease{
		Key: h.key, Instance: h.keeper.cfg.Instance, Fence: h.fence,
	}, nil)
}
