package idle

import "keryx/events"

// Standing is where an item stands.
type Standing struct {
	Epoch    events.Epoch    // in which it was queued
	Sequence events.Sequence // of its queued event
	State    events.ItemState
	Outcome  events.Outcome
	Turn     events.TurnID
	Reason   string
	Sender   events.PrincipalName
	Mode     events.Mode
	Asked    events.Mode    // when another mode is in force
	Late     events.Outcome // what was reported after it was lost

	over  bool // is among the ended, or has been
	out   bool // was among the ended long ago, and is kept for its key only
	keyed bool // an idempotency key leads to it
}

// Receipt returns where an item stands; ok is false for one never queued.
func (q *Queue) Receipt(session events.SessionID, id events.ReceiptID) (r events.Receipt, ok bool) {
	st, ok := q.receipts[id]
	if !ok {
		return events.Receipt{}, false
	}
	return events.Receipt{
		ID: id, Session: session, Epoch: st.Epoch, Sequence: st.Sequence,
		State: st.State, Outcome: st.Outcome, Turn: st.Turn, Reason: st.Reason,
		Mode: st.Mode, DowngradedFrom: st.Asked, Late: st.Late,
	}, true
}

// Sender returns who sent an item; empty if this fold does not know.
func (q *Queue) Sender(id events.ReceiptID) events.PrincipalName { return q.receipts[id].Sender }

// over reports whether an item in this state will not be offered any more.
func over(s events.ItemState) bool {
	switch s {
	case events.StateAccepted, events.StateSettled, events.StateExpired, events.StateCancelled,
		events.StateInvalidated, events.StateDiscarded:
		return true
	}
	return false
}

// ended reports whether an item in this state changes no more, but for a late report.
func ended(s events.ItemState) bool { return over(s) && s != events.StateAccepted }

func (q *Queue) stand(id events.ReceiptID, st Standing) {
	if q.receipts == nil {
		q.receipts = make(map[events.ReceiptID]Standing)
	}
	q.receipts[id] = st
	if ended(st.State) {
		q.retire(id)
	}
}

// retire puts an item among the ended, of which the newest [KeptReceipts] are
// remembered, and those that a key leads to. All others are in the log.
func (q *Queue) retire(id events.ReceiptID) {
	st, ok := q.receipts[id]
	if !ok || st.over {
		return
	}
	st.over = true
	q.receipts[id] = st
	q.ended = append(q.ended, id)
	for !q.whole && len(q.ended) > KeptReceipts {
		q.forget(q.ended[0])
		q.ended = q.ended[1:]
	}
}

func (q *Queue) forget(id events.ReceiptID) {
	st := q.receipts[id]
	if st.out = true; !st.keyed {
		delete(q.receipts, id)
		return
	}
	q.receipts[id] = st
}

// unkey tells that a key leads to these items no more.
func (q *Queue) unkey(ids []events.ReceiptID) {
	for _, id := range ids {
		st, ok := q.receipts[id]
		if st.keyed = false; !ok {
			continue
		}
		if q.receipts[id] = st; st.out && !q.whole {
			delete(q.receipts, id)
		}
	}
}

// Whole makes q remember every item for ever.
func (q *Queue) Whole() { q.whole = true }

// change edits a standing; one not known before begins empty, since a fold may begin
// after its item was queued.
func (q *Queue) change(id events.ReceiptID, edit func(*Standing)) {
	st := q.receipts[id]
	edit(&st)
	q.stand(id, st)
}
