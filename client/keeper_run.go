package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"keryx/events"
)

const (
	// renewBatch is how many leases one command renews.
	renewBatch = 500
	// renewSlack is how much before its time a lease is renewed in company: at most this,
	// and at most a twentieth of its ttl.
	renewSlack = 500 * time.Millisecond
	// retryMin and retryMax bound the pause after a renewal without an answer.
	retryMin = 100 * time.Millisecond
	retryMax = 2 * time.Second
	// retryEach is how much longer the pause gets with each lease that waits for an answer:
	// together they ask for 25 a second.
	retryEach = 40 * time.Millisecond
	// leastAwaited, and a part of all, is for how many leases answers are awaited at once;
	// more only where a deadline is near.
	leastAwaited = 20
	awaitedPart  = 50
	// lateAnswer is when an answer tells of a bus that was away or has too much to do.
	lateAnswer = time.Second
	// keeperRecheck bounds one sleep: timers do not count what the machine slept, the
	// clock of leases does.
	keeperRecheck = time.Second
)

// Run renews until ctx ends. It blocks; leases are neither released nor lost by its
// end, they just are no longer renewed.
func (k *Keeper) Run(ctx context.Context) {
	var asks sync.WaitGroup
	defer asks.Wait()
	for ctx.Err() == nil {
		lapsed, due, next := k.look()
		for _, h := range lapsed {
			k.cfg.Logger.Warn("lease lost", "key", h.key, "reason", "not renewed in time")
			k.cfg.OnLost(h)
		}
		for batch := range slices.Chunk(due, renewBatch) {
			asks.Go(func() { k.renew(ctx, batch) })
		}
		k.sleep(ctx, next)
	}
}

func (k *Keeper) sleep(ctx context.Context, next time.Duration) {
	t := time.NewTimer(max(min(next-k.cfg.Clock(), keeperRecheck), 0))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-k.kick:
	case <-t.C:
	}
}

// look ends trust where its time is over, and returns those leases, those to be renewed
// now, and when to look again.
func (k *Keeper) look() (lapsed, due []*Held, next time.Duration) {
	now := k.cfg.Clock()
	next = now + keeperRecheck
	k.mu.Lock()
	defer k.mu.Unlock()
	asking := 0
	for _, h := range k.held {
		if h.state == heldTrusted && now >= h.until {
			h.lapseLocked()
			lapsed = append(lapsed, h)
		}
		if h.state == heldTrusted {
			next = min(next, h.until)
		}
		switch {
		case h.state == heldGone:
		case h.asking:
			asking++
		case now >= h.renewAt-h.slackLocked():
			due = append(due, h)
		default:
			next = min(next, h.renewAt)
		}
	}
	due, next = k.admitLocked(due, max(leastAwaited, len(k.held)/awaitedPart)-asking, now, next)
	return lapsed, due, next
}

// admitLocked marks those that are asked for now: as many as there is room for, those with
// the least time left first, and all whose deadline is near. The others wait for the
// answers that are awaited.
func (k *Keeper) admitLocked(due []*Held, room int, now, next time.Duration) ([]*Held, time.Duration) {
	slices.SortFunc(due, func(a, b *Held) int { return cmp.Compare(a.until, b.until) })
	admitted := due[:0]
	for _, h := range due {
		if room--; room < 0 && (h.state != heldTrusted || now < h.urgent) {
			if h.state == heldTrusted {
				next = min(next, h.urgent)
			}
			continue
		}
		h.asking = true
		admitted = append(admitted, h)
	}
	return admitted, next
}

// slackLocked is how much earlier h may be renewed in company; a retry keeps its pause.
func (h *Held) slackLocked() time.Duration {
	if h.failed > 0 {
		return 0
	}
	return min(renewSlack, h.ttl/20)
}

// renew renews leases with one command, which is given up while there is time for another.
func (k *Keeper) renew(ctx context.Context, due []*Held) {
	defer k.wake()
	asked := k.cfg.Clock()
	cmd, within := k.renewal(due)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var a events.LeaseRenewals
	err := k.cfg.Caller.Do(ctx, events.CmdLeaseRenew, cmd, &a)
	if err != nil {
		k.cfg.Logger.Warn("renew leases", "count", len(due), "error", err)
	}
	if now := k.cfg.Clock(); err != nil || now-asked > lateAnswer {
		k.respread(now)
	}
	results := make(map[events.LeaseKey]events.LeaseRenewal, len(a.Results))
	for _, r := range a.Results {
		results[r.Key] = r
	}
	for _, h := range due {
		r, answered := results[h.key]
		k.settle(h, r, err == nil && answered, asked)
	}
}

func (k *Keeper) renewal(due []*Held) (cmd events.RenewLease, within time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cmd.Instance = k.cfg.Instance
	now := k.cfg.Clock()
	within = due[0].ttl / 3
	for _, h := range due {
		cmd.Leases = append(cmd.Leases, events.LeaseRef{Key: h.key, Fence: h.fence})
		within = min(within, h.ttl/3)
		if h.state == heldTrusted { // another try is to fit in
			within = min(within, max((h.until-now)/2, 2*retryMin))
		}
	}
	return cmd, within
}

// respread puts off what is due.
func (k *Keeper) respread(now time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.held {
		h.respreadLocked(now)
	}
}

// settle takes the answer to a renewal of h that was asked at a time.
func (k *Keeper) settle(h *Held, r events.LeaseRenewal, answered bool, asked time.Duration) {
	k.mu.Lock()
	regained, refused := h.answerLocked(r, answered, asked)
	k.mu.Unlock()
	switch {
	case regained:
		k.cfg.Logger.Info("lease regained", "key", h.key)
		k.cfg.OnRegained(h)
	case refused:
		k.cfg.Logger.Warn("lease lost", "key", h.key, "reason", r.Error.Message)
		k.cfg.OnLost(h)
	case answered && r.Error != nil:
		k.cfg.Logger.Warn("renew lease", "key", h.key, "error", r.Error)
	}
}

func (h *Held) answerLocked(r events.LeaseRenewal, answered bool, asked time.Duration) (regained, refused bool) {
	h.asking = false
	now := h.keeper.cfg.Clock()
	ttl := h.ttl
	if r.TTLMS > 0 {
		ttl = time.Duration(r.TTLMS) * time.Millisecond
	}
	switch {
	case h.state == heldGone: // forgotten, or lost, meanwhile
	case h.state == heldTrusted && now >= h.until: // too late: lost, as Run will see
	case answered && r.Error == nil && now < asked+ttl-ttl/10:
		h.extendLocked(asked, ttl, ttl/6)
		if regained = h.state == heldLapsed; regained {
			h.state, h.lost = heldTrusted, make(chan struct{})
		}
	case answered && r.Error != nil && refuses(r.Error):
		h.endLocked()
		return false, true
	default:
		h.postponeLocked(now)
	}
	return regained, false
}

// refuses reports whether an answer means that the lease is over.
func refuses(e *events.Error) bool {
	return errors.Is(e, events.ErrOf(events.CodeLeaseLost)) || errors.Is(e, events.ErrOf(events.CodeStaleFence)) ||
		errors.Is(e, events.ErrOf(events.CodeUnknownSession)) || errors.Is(e, events.ErrOf(events.CodeForbidden))
}
