package lifecycle

import (
	"time"

	"keryx/events"
	"keryx/internal/idle"
)

// foldQueued takes a new item, or one that a reset carried over in an event of its own
// because it did not fit into the carry: that one has its sequence already.
func (s *State) foldQueued(r events.Record, d events.ContinuationQueued) {
	first := d.Item.Sequence == 0
	if first {
		d.Item.Sequence = r.Sequence
	}
	if d.Item.Mode == events.ModeInterrupt && s.running != "" {
		s.Queue.Interrupt(d.Item, s.running)
	} else {
		s.Queue.Enqueue(d.Item)
	}
	s.toldExit(d.Item)
	s.clocks.activity = r.Time
	if first {
		s.keepReceipt(r, d.Item.Receipt)
	}
}

// keepReceipt answers the command behind r with where an item stands by now.
func (s *State) keepReceipt(r events.Record, id events.ReceiptID) {
	if receipt, ok := s.Receipt(id); ok {
		s.keepAnswer(r, receipt)
	}
}

func (s *State) keepReceipts(r events.Record, ids []events.ReceiptID) {
	if len(ids) == 1 { // commands name one item each
		s.keepReceipt(r, ids[0])
	}
}

func (s *State) foldOffered(r events.Record, d events.ContinuationOffered) {
	s.Queue.Offer(idle.Offer{
		ID: d.Offer, Items: d.Items, Host: d.Host, Instance: d.Instance,
		At: r.Time, Deadline: millis(d.DeadlineMS), Turn: d.Turn,
	})
}

// foldRequeued tells what a command asked for, a decline or the return of an unresolved
// item, from an offer taken back on the way to something else, which is nobody's answer.
func (s *State) foldRequeued(r events.Record, d events.ContinuationRequeued) {
	o, open := s.OpenOffer()
	switch open = open && o.ID == d.Offer; {
	case d.DelayMS > 0:
		s.Queue.Requeue(d.Offer, d.Items, r.Time.Add(millis(d.DelayMS)))
	default:
		s.Queue.Requeue(d.Offer, d.Items, time.Time{})
	}
	switch {
	case d.DelayMS > 0 || d.Declined:
		s.keepAnswer(r, events.Done{Sequence: r.Sequence})
	case !open:
		s.keepReceipts(r, d.Items)
	}
}

func (s *State) foldUnresolved(_ events.Record, d events.ContinuationUnresolved) {
	s.Queue.Unresolve(d.Items, d.Reason)
}

func (s *State) foldInvalidated(_ events.Record, d events.ContinuationInvalidated) {
	s.Queue.Invalidate(d.Items, d.Reason)
}

func (s *State) foldEdited(r events.Record, d events.ContinuationEdited) {
	s.Queue.Edit(d.Receipt, d.Body)
	s.keepReceipt(r, d.Receipt)
}

// foldDowngraded follows the queued event of a submit in its batch, or stands alone when
// it was found out later that the host cannot do the mode.
func (s *State) foldDowngraded(r events.Record, d events.ContinuationDowngraded) {
	s.Queue.Downgrade(d.Receipt, d.From, d.To)
	s.keepReceipt(r, d.Receipt)
}

func (s *State) foldHeld(_ events.Record, d events.ContinuationHeld) {
	s.Queue.Hold(d.Items, d.Reason)
}

func (s *State) foldReleased(r events.Record, d events.ContinuationReleased) {
	s.Queue.Release(d.Items)
	s.keepReceipts(r, d.Items)
}

func (s *State) foldExpired(_ events.Record, d events.ContinuationExpired) {
	s.Queue.End(d.Items, events.StateExpired, "")
}

func (s *State) foldCancelled(r events.Record, d events.ContinuationCancelled) {
	s.Queue.End(d.Items, events.StateCancelled, d.Reason)
	s.keepReceipts(r, d.Items)
}

func (s *State) foldDiscarded(r events.Record, d events.ContinuationDiscarded) {
	s.Queue.End(d.Items, events.StateDiscarded, d.Reason)
	s.keepReceipts(r, d.Items)
}
