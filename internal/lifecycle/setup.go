package lifecycle

import (
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/idle"
)

// setupKey is the idempotency key of the item that tells of a setup: it is queued once,
// whoever is the active authority.
func setupKey(id events.RunID) string { return "setup:" + string(id) }

// Ask returns what a session is now, for a setup that it waits for.
func (s *State) Ask() events.SetupAsk {
	return events.SetupAsk{Session: s.Session, Epoch: s.Epoch, Source: s.Source, Surface: s.Surface, Sequence: s.LastSequence}
}

// Since is where the open epoch, or the host that drives it, began: what was decided for
// the profile before it is in effect.
func (s *State) Since() events.Sequence { return max(s.clocks.epoch, s.Fence.Sequence) }

// Unfit says why a session no longer waits for what it asked for; empty when it does.
// What changed and changed back does not count as unchanged.
func (s *State) Unfit(a events.SetupAsk) string {
	switch {
	case !s.Exists():
		return "the session is gone"
	case s.Epoch != a.Epoch || !s.Open():
		return fmt.Sprintf("epoch %d of the session has ended", a.Epoch)
	case s.clocks.moved > a.Sequence:
		return "the session's source or surface changed"
	}
	return ""
}

// SetupReceipt returns the item that told of a setup.
func (s *State) SetupReceipt(id events.RunID, now time.Time) (events.ReceiptID, bool) {
	receipt, _, ok := s.Queue.Keyed(events.AuthorityName, setupKey(id), now)
	return receipt, ok
}

// setupDone puts the word into the queue, bound to what the session is.
func (s *State) setupDone(c Command, d SetupDone) (Decision, error) {
	if _, told := s.SetupReceipt(d.Run, c.Now); told || s.Unfit(d.Ask) != "" {
		return Decision{}, nil
	}
	it := events.Item{
		Receipt: events.ReceiptID(c.Mint()), Kind: events.ItemSetupReceipt, Mode: events.ModeEnqueue, Body: d.Body,
		Sender: events.AuthorityName, IdempotencyKey: setupKey(d.Run), BodyDigest: idle.Digest(events.ItemSetupReceipt, d.Body),
		OnReset: events.OnResetDrop, Epoch: s.Epoch, QueuedAt: c.Now,
		Bind: []events.Binding{events.BindEpoch, events.BindSource, events.BindSurface},
	}
	if err := s.room(it); err != nil {
		return Decision{}, err
	}
	return one(s.draft(events.TypeContinuationQueued, events.ContinuationQueued{Item: it}))
}
