package client

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// WatchLease calls fn with each record that the bus writes for a lease, as it is written,
// until stop is called; a record of state "" means that none is kept any more. fn is called
// on a goroutine of the connection and must not block. Records that pass while the
// connection is down are missed.
func WatchLease(nc *nats.Conn, key events.LeaseKey, fn func(events.LeaseRecord)) (stop func(), err error) {
	sub, err := nc.Subscribe(events.LeaseSubject(key), func(m *nats.Msg) {
		var rec events.LeaseRecord
		if json.Unmarshal(m.Data, &rec) != nil {
			rec = events.LeaseRecord{} // an expiry marker's body is empty
		}
		fn(rec)
	})
	if err != nil {
		return nil, fmt.Errorf("watch lease %s: %w", key, err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only once the connection is gone
}

// leaseWatch hears what the bus writes about one acquired lease. What it hears before the
// grant's own record is of holders before.
type leaseWatch struct {
	keeper *Keeper
	stop   func()

	mu    sync.Mutex
	ours  bool                // a record of this instance's hold was heard
	after *events.LeaseRecord // the last one after that, while held is nil
	held  *Held
}

// watch begins to listen, before the lease is asked for. It returns nil if this keeper
// watches nothing.
func (k *Keeper) watch(key events.LeaseKey) (*leaseWatch, error) {
	if k.cfg.NATS == nil {
		return nil, nil
	}
	w := &leaseWatch{keeper: k}
	stop, err := WatchLease(k.cfg.NATS, key, w.hear)
	w.stop = stop
	return w, err
}

// end stops listening; a nil watch has nothing to stop.
func (w *leaseWatch) end() {
	if w != nil {
		w.stop()
	}
}

func (w *leaseWatch) hear(rec events.LeaseRecord) {
	w.mu.Lock()
	h := w.held
	switch {
	case rec.State == events.LeaseHeld && rec.Instance == w.keeper.cfg.Instance:
		w.ours, w.after = true, nil
		h = nil // nothing new
	case !w.ours:
		h = nil
	case h == nil:
		w.after = &rec
	}
	w.mu.Unlock()
	if h != nil {
		w.keeper.notice(h, rec)
	}
}

// grant says which lease it is about.
func (w *leaseWatch) grant(h *Held) {
	w.mu.Lock()
	w.held = h
	after := w.after
	w.mu.Unlock()
	if after != nil {
		w.keeper.notice(h, *after)
	}
}

// notice takes the bus's word that a lease is no longer held under its fence.
func (k *Keeper) notice(h *Held, rec events.LeaseRecord) {
	mine := rec.Instance == k.cfg.Instance && rec.Fence == h.fence
	if rec.Instance == k.cfg.Instance && !mine {
		return // about another hold of this instance
	}
	k.mu.Lock()
	told := h.state != heldGone
	switch {
	case !told:
	case mine && rec.State == events.LeaseExpired && h.state == heldTrusted:
		h.lapseLocked()
	case mine && rec.State == events.LeaseExpired:
		told = false // it lapsed before
	default:
		h.endLocked()
	}
	k.mu.Unlock()
	if told {
		k.cfg.Logger.Warn("lease lost", "key", h.key, "state", rec.State, "holder", rec.Holder, "reason", rec.Reason)
		k.cfg.OnLost(h)
		k.wake()
	}
}
