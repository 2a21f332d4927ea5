package idle

import (
	"slices"
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
		e.offer = o.ID
		q.offered = append(q.offered, e)
		q.change(id, func(s *Standing) { s.State, s.Reason = events.StateOffered, "" })
	}
	q.offer = &o
}

// Accept makes items those of a turn and closes the open offer.
func (q *Queue) Accept(ids []events.ReceiptID, turn events.TurnID) {
	for _, id := range ids {
		e, held := q.take(id)
		if over(q.receipts[id].State) {
			continue
		}
		if held {
			q.count(e.Item.Kind)
		}
		q.change(id, func(s *Standing) { s.State, s.Turn, s.Reason = events.StateAccepted, turn, "" })
	}
	q.Withdraw()
}

func (q *Queue) count(k events.ItemKind) {
	q.automatic++
	if k == events.ItemUser {
		q.automatic = 0
	}
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

// Late notes what a host reported of a turn that was ended as lost.
func (q *Queue) Late(turn events.TurnID, outcome events.Outcome) {
	for id, st := range q.receipts {
		if st.State == events.StateSettled && st.Turn == turn && st.Outcome == events.OutcomeLost {
			st.Late = outcome
			q.receipts[id] = st
		}
	}
}

// Requeue puts the items of an offer back to the head, not to be offered before a time;
// the zero time is at once. A delay counts as a decline. The offer is closed if it is
// open; of others, unresolved items come back.
func (q *Queue) Requeue(o events.OfferID, ids []events.ReceiptID, notBefore time.Time) {
	open := q.offer != nil && q.offer.ID == o
	for i := range q.offered {
		if open && !notBefore.IsZero() {
			q.offered[i].NotBefore = notBefore
			q.offered[i].Declines++
		}
	}
	var back []Entry
	for _, id := range ids {
		if e, ok := takeFrom(&q.unresolved, id); ok {
			back = append(back, e)
			q.change(id, func(s *Standing) { s.State, s.Reason = events.StateQueued, "" })
		}
	}
	q.waiting = append(back, q.waiting...)
	if open {
		q.Withdraw()
	}
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
	q.End(ids, events.StateInvalidated, reason)
}

// End ends items that will not be delivered, in a state that says why. If an offered one
// is among them, the others of its offer wait again at the head.
func (q *Queue) End(ids []events.ReceiptID, state events.ItemState, reason string) {
	for _, id := range ids {
		if _, ok := takeFrom(&q.offered, id); ok {
			q.Withdraw()
		}
		q.take(id)
		if over(q.receipts[id].State) {
			continue
		}
		q.change(id, func(s *Standing) { s.State, s.Reason = state, reason })
	}
}

// Edit gives an item another body. If it is offered, its offer is withdrawn: the host
// was told the old one.
func (q *Queue) Edit(id events.ReceiptID, b events.Body) {
	e := q.at(id)
	if e == nil {
		return
	}
	e.Item.Body = b
	if index(q.offered, id) >= 0 {
		q.Withdraw()
	}
}

// Downgrade gives an item another mode.
func (q *Queue) Downgrade(id events.ReceiptID, from, to events.Mode) {
	if e := q.at(id); e != nil {
		e.Item.Mode, e.Item.Asked, e.interrupts = to, from, ""
	}
	if _, ok := q.receipts[id]; ok {
		q.change(id, func(s *Standing) { s.Mode, s.Asked = to, from })
	}
}

// Hold keeps waiting items back.
func (q *Queue) Hold(ids []events.ReceiptID, reason string) {
	for _, id := range ids {
		if e, ok := takeFrom(&q.waiting, id); ok {
			q.held = append(q.held, e)
			q.change(id, func(s *Standing) { s.Reason = reason })
		}
	}
}

// Release lets items wait that were held, at the head, or not due, at the end.
func (q *Queue) Release(ids []events.ReceiptID) {
	var freed []Entry
	for _, id := range ids {
		if e, ok := takeFrom(&q.held, id); ok {
			e.free = true
			freed = append(freed, e)
			q.change(id, func(s *Standing) { s.Reason = "" })
		} else if e, ok := takeFrom(&q.scheduled, id); ok {
			e.Item.NotBefore = time.Time{}
			q.waiting = append(q.waiting, e)
		}
	}
	q.waiting = append(freed, q.waiting...)
}

// Unfit marks what is bound to something that has changed. It is never offered again
// and is to be invalidated, see [Queue.Unfitting].
func (q *Queue) Unfit(to events.Binding, reason string) {
	for _, list := range q.lists() {
		for i := range *list {
			e := &(*list)[i]
			if e.unfit == "" && slices.Contains(e.Item.Bind, to) {
				e.unfit = reason
			}
		}
	}
}

// Withdraw closes the open offer without an answer; its items wait at the head. A turn
// that did not take them as a steer is not asked again.
func (q *Queue) Withdraw() {
	for i := range q.offered {
		e := &q.offered[i]
		if q.offer != nil && q.offer.Turn != "" {
			e.passedOver = q.offer.Turn
		}
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
	for _, e := range q.unresolved {
		q.retire(e.Item.Receipt)
	}
	q.waiting, q.unresolved, q.scheduled, q.held, q.automatic = nil, nil, nil, nil, 0
	for _, it := range carried {
		q.Enqueue(it)
	}
}
