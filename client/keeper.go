package client

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

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
	// NATS, if set, makes the keeper hear what the bus writes about the leases that it
	// acquired, so that a lease that is revoked or taken is lost at once, and not only at
	// its next renewal. The connection is the caller's.
	NATS *nats.Conn
	// Clock defaults to [BootTime], Logger to slog.Default.
	Clock  func() time.Duration
	Logger *slog.Logger
}

// Keeper is the holder's side of leases. It renews each when a third of its ttl has
// passed, with a jitter of a sixth, after a grant of a third, and says when one is lost.
// Those that are due together go in one command. While answers are awaited, only a few
// more leases are asked for until they come near their deadlines, and after answers that
// came late or not at all the rest is spread anew: a bus that comes back does not find all
// leases of a holder at its door at once.
//
// A lease is trusted until its ttl, less a tenth, after the moment before the last
// request that was answered. Past that it is lost, whatever the bus would say. The ttl is
// the one the bus has on record. Nothing is trusted for longer because a request hangs,
// and no lease is lost because the request of another does.
type Keeper struct {
	cfg  KeeperConfig
	kick chan struct{} // size 1, coalesces: something is to be looked at earlier

	mu   sync.Mutex
	held map[events.LeaseKey]*Held
	// failing is how many of them got no answer to their last renewal.
	failing int
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

// LeaseTerms are what a lease is asked for with. The zero value means the bus's defaults.
type LeaseTerms struct {
	// TTL is how long the holder may be silent: whole milliseconds, 2 s to 1 h. Default 15 s.
	TTL time.Duration
	// Grace is how long after that its work may take to end; nobody else gets the lease
	// before. Default none, at most 5 min.
	Grace time.Duration
}

// Acquire asks for a lease and keeps it. The error is *[events.Error] with code
// lease_held while another has it, and lease_revoked when an operator has taken it from
// this instance. Asking again for one that is held changes its terms, not its fence.
func (k *Keeper) Acquire(ctx context.Context, key events.LeaseKey, terms LeaseTerms) (*Held, error) {
	w, err := k.watch(key)
	if err != nil {
		return nil, err
	}
	asked := k.cfg.Clock()
	var a events.LeaseAnswer
	err = k.cfg.Caller.Do(ctx, events.CmdLeaseAcquire, events.AcquireLease{
		Key: key, Instance: k.cfg.Instance, TTLMS: terms.TTL.Milliseconds(), GraceMS: terms.Grace.Milliseconds(),
	}, &a)
	if err != nil {
		w.end()
		return nil, err
	}
	return k.adopt(key, a.Fence, time.Duration(a.TTLMS)*time.Millisecond, asked, w), nil
}

// Adopt keeps a lease that was granted by other means, e.g. a session's at attach.
// asked is the clock before the request that granted it. A lease of that key that was
// kept before is replaced, and its [Held.Lost] closed.
func (k *Keeper) Adopt(key events.LeaseKey, fence events.Fence, ttl, asked time.Duration) *Held {
	return k.adopt(key, fence, ttl, asked, nil)
}

func (k *Keeper) adopt(key events.LeaseKey, fence events.Fence, ttl, asked time.Duration, w *leaseWatch) *Held {
	h := &Held{keeper: k, key: key, fence: fence, watch: w, lost: make(chan struct{}), state: heldTrusted}
	k.mu.Lock()
	if old := k.held[key]; old != nil {
		old.endLocked()
	}
	h.extendLocked(asked, ttl, ttl/3)
	k.held[key] = h
	k.mu.Unlock()
	if w != nil {
		w.grant(h)
	}
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
