package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"keryx/events"
)

// stop ends the turns, bounded, and gives the sessions back.
func (h *host) stop() error {
	h.mu.Lock()
	h.stopping = true
	for _, e := range h.sessions {
		if e.running != nil {
			e.running.cancel(ErrHostStopping)
		}
	}
	h.mu.Unlock()
	err := h.join()
	h.detachAll(h.life)
	return err
}

// errLeftRunning means that a handler did not return when its turn's context had ended.
var errLeftRunning = errors.New("handlers are still running")

// join waits for all work. What still talks to the bus after the grace is cut off; only
// a handler that does not heed its context can outlive that.
func (h *host) join() error {
	done := make(chan struct{})
	go func() { h.work.Wait(); close(done) }()
	bound := time.NewTimer(h.cfg.StopGrace)
	defer bound.Stop()
	select {
	case <-done:
		return nil
	case <-bound.C:
	}
	h.end(ErrHostStopping)
	bound.Reset(time.Second)
	select {
	case <-done:
		return nil
	case <-bound.C:
		return fmt.Errorf("%w %v after they were told to stop", errLeftRunning, h.cfg.StopGrace)
	}
}

// detachAll gives back what is attached.
func (h *host) detachAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachFor)
	defer cancel()
	h.mu.Lock()
	var all []*hosted
	for _, e := range h.sessions {
		if e.attached {
			all = append(all, e)
		}
	}
	h.mu.Unlock()
	var detaching sync.WaitGroup
	for _, e := range all {
		if h.looks.Acquire(ctx, 1) != nil {
			break // their leases run out
		}
		detaching.Go(func() {
			defer h.looks.Release(1)
			h.drop(e)
			h.detach(ctx, e)
		})
	}
	detaching.Wait()
}

func (h *host) detach(ctx context.Context, e *hosted) {
	err := h.conn.Detach(ctx, e.id, e.fence)
	switch code := events.CodeOf(err); {
	case err == nil, code == events.CodeStaleFence, code == events.CodeAlreadyFinalized:
	default:
		h.cfg.Logger.Warn("detach", "session", e.id, "error", err)
	}
}

func (h *host) idleTicker() *time.Ticker {
	if h.cfg.IdleDetach <= 0 {
		t := time.NewTicker(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTicker(max(h.cfg.IdleDetach/4, 10*time.Millisecond))
}

// detachIdle gives back the sessions that had no turn for long enough. What is queued
// meanwhile is found by the news of the detach.
func (h *host) detachIdle() {
	now := BootTime()
	h.mu.Lock()
	var idle []*hosted
	for _, e := range h.sessions {
		if e.attached && e.running == nil && now-e.idleFrom >= h.cfg.IdleDetach {
			e.attached = false // no offer begins a turn any more, and no look attaches before the detach
			idle = append(idle, e)
		}
	}
	h.mu.Unlock()
	for _, e := range idle {
		h.spawn(func() {
			h.detach(h.life, e)
			h.drop(e)
		})
	}
}
