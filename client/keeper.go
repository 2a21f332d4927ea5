package client

import (
	"context"
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

// KeeperConfig says for whom leases are kept. Caller and Instance are needed. The
// functions are called on goroutines of the keeper, and must not block.
type KeeperConfig struct {
	Caller   Caller
	Instance events.Instance
	// OnLost is called when trust in a lease has ended; [Held.Lost] is closed by then.
	OnLost func(*Held)
	// OnRegained, if set, makes the keeper go on asking for a lease whose trust has ended
	// for want of an answer, e.g. because the bus was away for longer than the ttl. It is
	// called when the bus has renewed it back, under its old fence. When the bus refuses
	// it instead, OnLost is called once more, with [Held.Final] true. If it is nil a lost
	// lease is asked for no more.
	OnRegained func(*Held)
	// Clock defaults to [BootTime], Logger to slog.Default.
	Clock  func() time.Duration
	Logger *slog.Logger
}

// Keeper is the holder's side of leases. It renews each when a third of its ttl has
// passed, with a jitter of a sixth, all that are due with one command, and says when one
// is lost.
//
// A lease is trusted until its ttl, less a tenth, after the moment before the last
// request that was answered. Past that it is lost, whatever the bus would say. The ttl is
// the one the bus has on record. Nothing is trusted for longer because a request hangs,
// and no lease waits for the request of another.
type Keeper struct {
	cfg  KeeperConfig
	kick chan struct{} // size 1, coalesces: something is to be looked at earlier

	mu   sync.Mutex
	held map[events.LeaseKey]*Held
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
	return &Keeper{cfg: cfg, kick: make(chan struct{}, 1), held: make(map[events.LeaseKey]*Held)}
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
// asked is the clock before the request that granted it. A lease of that key that was
// kept before is replaced, and its [Held.Lost] closed.
func (k *Keeper) Adopt(key events.LeaseKey, fence events.Fence, ttl, asked time.Duration) *Held {
	h := &Held{keeper: k, key: key, fence: fence, lost: make(chan struct{}), state: heldTrusted}
	k.mu.Lock()
	if old := k.held[key]; old != nil {
		old.endLocked()
	}
	h.extendLocked(asked, ttl)
	k.held[key] = h
	k.mu.Unlock()
	k.wake()
	return h
}

func (k *Keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// jitter returns a random part of d.
func jitter(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(max(d, 1)))) }
