package idle

import (
	"time"

	"keryx/events"
)

// Next returns the entries that a free host is to be offered together, and from when on;
// the zero time is at once. merges says whether the host takes several items as one
// turn.
func (q *Queue) Next(merges bool) (group []Entry, ready time.Time) {
	if len(q.waiting) == 0 {
		return nil, time.Time{}
	}
	head := q.waiting[0]
	if !merges || head.Item.Mode != events.ModeMerge {
		return q.waiting[:1:1], head.NotBefore
	}
	return q.mergeable(head)
}

// mergeable returns the run of items at the head that become one turn. The run is
// complete when something else follows it, or when its window has passed.
func (q *Queue) mergeable(head Entry) (group []Entry, ready time.Time) {
	last, n, size, closed := head.Item.QueuedAt, 0, 0, false
	for _, e := range q.waiting {
		size += Size(e.Item.Body)
		joins := n == 0 || e.joins(head, last) && n < MaxMerge && size <= MaxMergeBytes
		if closed = !joins; closed {
			break
		}
		last, ready = e.Item.QueuedAt, later(ready, e.NotBefore)
		n++
	}
	if !closed {
		ready = later(ready, earlier(last.Add(MergeWindow), head.Item.QueuedAt.Add(MergeMost)))
	}
	return q.waiting[:n:n], ready
}

func (e Entry) joins(head Entry, last time.Time) bool {
	it := e.Item
	return it.Mode == events.ModeMerge && it.Kind == head.Item.Kind &&
		it.QueuedAt.Sub(last) <= MergeWindow && it.QueuedAt.Sub(head.Item.QueuedAt) <= MergeMost
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Steer returns the first item that is to go into the running turn and was not passed
// over by it.
func (q *Queue) Steer(running events.TurnID) (e Entry, ok bool) {
	return q.first(func(e *Entry) bool {
		spent := e.Item.Kind != events.ItemUser && !e.free && q.automatic >= Budget
		return e.Item.Mode == events.ModeSteer && e.passedOver != running && e.unfit == "" && !spent
	})
}

// Interrupts returns the first item for which the running turn is to be aborted.
func (q *Queue) Interrupts(running events.TurnID) (e Entry, ok bool) {
	if running == "" {
		return Entry{}, false
	}
	return q.first(func(e *Entry) bool { return e.interrupts == running && e.unfit == "" })
}

func (q *Queue) first(is func(*Entry) bool) (e Entry, ok bool) {
	for i := range q.waiting {
		if is(&q.waiting[i]) {
			return q.waiting[i], true
		}
	}
	return Entry{}, false
}

// Unfitting returns the items of the first reason for which items must be invalidated.
// Unresolved ones are left to whoever decides on them.
func (q *Queue) Unfitting() (ids []events.ReceiptID, reason string) {
	for _, list := range q.kept() {
		for i := range list {
			if e := &list[i]; e.unfit != "" && (reason == "" || reason == e.unfit) {
				ids, reason = append(ids, e.Item.Receipt), e.unfit
			}
		}
	}
	return ids, reason
}

// Expired returns the items whose time has passed.
func (q *Queue) Expired(now time.Time) (ids []events.ReceiptID) {
	for _, list := range q.kept() {
		for i := range list {
			if at := list[i].Item.ExpiresAt; !at.IsZero() && !at.After(now) {
				ids = append(ids, list[i].Item.Receipt)
			}
		}
	}
	return ids
}

// NextExpiry returns when the next item expires; zero for never.
func (q *Queue) NextExpiry() (next time.Time) {
	for _, list := range q.kept() {
		for i := range list {
			if at := list[i].Item.ExpiresAt; !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

// DueItems returns the scheduled items whose time has come.
func (q *Queue) DueItems(now time.Time) (ids []events.ReceiptID) {
	for _, e := range q.scheduled {
		if e.Item.NotBefore.After(now) {
			break
		}
		ids = append(ids, e.Item.Receipt)
	}
	return ids
}

// NextDue returns when the next scheduled item is due; zero for none.
func (q *Queue) NextDue() time.Time {
	if len(q.scheduled) == 0 {
		return time.Time{}
	}
	return q.scheduled[0].Item.NotBefore
}

// OverBudget returns the automatic items at the head that are to be held: too many were
// accepted in a row.
func (q *Queue) OverBudget() (ids []events.ReceiptID) {
	if q.automatic < Budget {
		return nil
	}
	for _, e := range q.waiting {
		if e.Item.Kind == events.ItemUser || e.free {
			break
		}
		ids = append(ids, e.Item.Receipt)
	}
	return ids
}

// Releasable returns the held items for which there is room in the budget again.
func (q *Queue) Releasable() (ids []events.ReceiptID) {
	if len(q.held) == 0 {
		return nil
	}
	room := Budget - q.automatic
	for _, list := range [][]Entry{q.offered, q.waiting} {
		for i := range list {
			if list[i].Item.Kind != events.ItemUser {
				room--
			}
		}
	}
	for _, e := range q.held[:max(0, min(room, len(q.held)))] {
		ids = append(ids, e.Item.Receipt)
	}
	return ids
}
