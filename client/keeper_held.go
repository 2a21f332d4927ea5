package client

import (
	"context"
	"time"

	"keryx/events"
)

type heldState int

const (
	heldTrusted heldState = iota + 1
	heldLapsed            // no longer trusted, still asked for
	heldGone
)

// Held is a lease that is kept. Its methods are safe for concurrent use.
type Held struct {
	keeper *Keeper
	key    events.LeaseKey
	fence  events.Fence
	watch  *leaseWatch // nil: nothing is heard of it

	// guarded by keeper.mu
	state   heldState
	lost    chan struct{} // closed unless trusted; made anew when regained
	ttl     time.Duration
	until   time.Duration // trusted until
	renewAt time.Duration
	urgent  time.Duration // from then on it is asked for whatever else is awaited
	asking  bool          // a renewal is under way
	failed  int           // renewals in a row without an answer
}

// Key returns the lease's key.
func (h *Held) Key() events.LeaseKey { return h.key }

// Fence returns the lease fence.
func (h *Held) Fence() events.Fence { return h.fence }

// Lost returns a channel that is closed when trust in the lease ends: at its deadline, or
// at once when the bus refuses it. Release and Forget do not close it. A lease that was
// regained has a new channel.
func (h *Held) Lost() <-chan struct{} {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return h.lost
}

// Valid reports whether the lease may be trusted now. Check it right before each act
// that needs the lease.
func (h *Held) Valid() bool {
	now := h.keeper.cfg.Clock()
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return h.state == heldTrusted && now < h.until
}

// Final reports whether the lease is over: refused, released, forgotten, replaced, or
// lost by a keeper that regains nothing.
func (h *Held) Final() bool {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return h.state == heldGone
}

// Forget stops keeping the lease without giving it back.
func (h *Held) Forget() {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	h.dropLocked()
}

// Release stops keeping the lease and gives it back.
func (h *Held) Release(ctx context.Context) error {
	h.Forget()
	return h.keeper.cfg.Caller.Do(ctx, events.CmdLeaseRelease, events.ReleaseLease{
		Key: h.key, Instance: h.keeper.cfg.Instance, Fence: h.fence,
	}, nil)
}

// dropLocked stops keeping h.
func (h *Held) dropLocked() {
	h.state = heldGone
	h.answeredLocked()
	h.watch.end()
	if h.keeper.held[h.key] == h {
		delete(h.keeper.held, h.key)
	}
}

// endLocked stops keeping h for good and says so on its channel.
func (h *Held) endLocked() {
	if h.state == heldTrusted {
		close(h.lost)
	}
	h.dropLocked()
}

// lapseLocked ends trust in h.
func (h *Held) lapseLocked() {
	if h.keeper.cfg.OnRegained == nil {
		h.endLocked()
		return
	}
	close(h.lost)
	h.state = heldLapsed
}

// extendLocked counts from asked, the time before the request.
func (h *Held) extendLocked(asked, ttl, spread time.Duration) {
	h.answeredLocked()
	h.ttl = ttl
	h.until = asked + ttl - ttl/10
	h.renewAt = asked + ttl/3 + jitter(spread)
	h.urgent = h.until - ttl/8 - jitter(ttl/8)
}

// respreadLocked puts off what is due, at most to the middle of the time that is left: the
// bus was away or slow, and others wait as well.
func (h *Held) respreadLocked(now time.Duration) {
	left := (h.until - now) / 2
	if h.state == heldLapsed {
		left = h.ttl / 3 // there is no deadline any more
	}
	if h.asking || h.renewAt > now || left <= 0 {
		return
	}
	h.renewAt = now + left/8 + jitter(left-left/8) // those whose time comes go first
}

// postponeLocked tries again soon what got no answer: the more often the nearer the
// deadline is, the less often the more leases wait for the same.
func (h *Held) postponeLocked(now time.Duration) {
	if h.failed == 0 {
		h.keeper.failing++
	}
	h.failed++
	pause := min(retryMin<<min(h.failed, 10), retryMax)
	pause = max(pause, time.Duration(h.keeper.failing)*retryEach)
	if h.state == heldTrusted {
		pause = min(pause, max((h.until-now)/4, retryMin))
	}
	h.renewAt = now + pause/2 + jitter(pause)
}

// answeredLocked ends a row of renewals without an answer.
func (h *Held) answeredLocked() {
	if h.failed > 0 {
		h.keeper.failing--
	}
	h.failed = 0
}
