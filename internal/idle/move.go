package idle

import (
	"time"

	"keryx/events"
)

// Offer opens an offer of waiting items. Items that do not wait are left out.
func (q *Queue) Offer(o Offer) {
	q.Withdraw()
	for _, id := range o.Items {
		e, ok := q.take(id)
		if !ok {
			continue
		}
		q.offered = append(q.offered, e)
		q.change(id, func(s *Standing) { s.State = events.StateOffered })
	}
	q.offer = &o
}

// Accept makes items those of a turn and closes the open offer.
func (q *Queue) Accept(ids []events.ReceiptID, turn events.TurnID) {
	for _, id := range ids {
		q.take(id)
		if over(q.receipts[id].State) {
			continue
		}
		q.change(id, func(s *Standing) { s.State, s.Turn, s.Reason = events.StateAccepted, turn, "" })
	}
	q.Withdraw()
}

// Settle ends the items of a turn. One that did not belong to it is left alone.
func (q *Queue) Settle(ids []events.ReceiptID, turn events.TurnID, outcome events.Outcome) {
	for _, id := range ids {
		if st, ok := q.receipts[id]; ok && (st.State != events.StateAccepted || st.Turn != turn) {
			continue
		}
		q.change(id, func(s *Standing) { s.State, s.Turn, s.Outcome = events.StateSettled, turn, outcome })
	}
}

// Requeue closes the open offer and puts its items back to the head, not to be
// offered before a time; the zero time is at once. A delay counts as a decline.
func (q *Queue) Requeue(ids []events.ReceiptID, notBefore time.Time) {
	if !notBefore.IsZero() {
		for i := range q.offered {
			q.offered[i].NotBefore = notBefore
			q.offered[i].Declines++
		}
	}
	var back []Entry
	for _, id := range ids {
		if e, ok := q.takeUnresolved(id); ok {
			back = append(back, e)
			q.change(id, func(s *Standing) { s.State, s.Reason = events.StateQueued, "" })
		}
	}
	q.waiting = append(back, q.waiting...)
	q.Withdraw()
}

// takeUnresolved takes an item only if nobody knows whether it was taken.
func (q *Queue) takeUnresolved(id events.ReceiptID) (Entry, bool) {
	for _, e := range q.unresolved {
		if e.Item.Receipt == id {
			return q.take(id)
		}
	}
	return Entry{}, false
}

// Unresolve closes the open offer; nobody knows whether its items were taken.
func (q *Queue) Unresolve(ids []events.ReceiptID, reason string) {
	for _, id := range ids {
		e, ok := q.take(id)
		if !ok {
			continue
		}
		q.unresolved = append(q.unresolved, e)
		q.change(id, func(s *Standing) { s.State, s.Reason = events.StateUnresolved, reason })
	}
	q.Withdraw()
}

// Invalidate ends items that will not be delivered.
func (q *Queue) Invalidate(ids []events.ReceiptID, reason string) {
	for _, id := range ids {
		q.take(id)
		if over(q.receipts[id].State) {
			continue
		}
		q.change(id, func(s *Standing) { s.State, s.Reason = events.StateInvalidated, reason })
	}
	if len(q.offered) == 0 {
		q.offer = nil
	}
}

// Withdraw closes the open offer without an answer; its items wait at the head.
func (q *Queue) Withdraw() {
	for _, e := range q.offered {
		q.change(e.Item.Receipt, func(s *Standing) { s.State = events.StateQueued })
	}
	if len(q.offered) > 0 {
		q.waiting = append(q.offered, q.waiting...)
	}
	q.offered, q.offer = nil, nil
}

// Restart begins an epoch in which just these items wait. Unresolved ones stay as
// receipts only.
func (q *Queue) Restart(carried []events.Item) {
	q.Withdraw()
	q.waiting, q.unresolved = nil, nil
	for _, it := range carried {
		q.Enqueue(it)
	}
}
