package idle

import (
	"slices"
	"time"

	"keryx/events"
)

// Entry is an item that may still be delivered.
type Entry struct {
	Item events.Item
	// NotBefore is when it may be offered again after a decline; zero for at once.
	NotBefore time.Time
	// Declines counts those in a row.
	Declines int
}

// Offer is what a host was asked to take.
type Offer struct {
	ID       events.OfferID
	Items    []events.ReceiptID
	Host     events.PrincipalName
	Instance events.Instance
	At       time.Time
	Deadline time.Duration
}

// Due returns when the host must have answered.
func (o Offer) Due() time.Time { return o.At.Add(o.Deadline) }

// Queue is what waits for a session, and where each receipt stands. The zero value
// is empty and ready.
type Queue struct {
	waiting    []Entry // in order of delivery
	offered    []Entry // those of the open offer
	unresolved []Entry
	offer      *Offer
	receipts   map[events.ReceiptID]Standing
	keys       keyring
}

// Enqueue puts an item at the end. An item that waits already or has moved on since
// is left as it is.
func (q *Queue) Enqueue(it events.Item) {
	if st, ok := q.receipts[it.Receipt]; ok && (st.State != events.StateQueued || q.holds(it.Receipt)) {
		return
	}
	q.waiting = append(q.waiting, Entry{Item: it})
	q.stand(it.Receipt, Standing{Epoch: it.Epoch, Sequence: it.Sequence, State: events.StateQueued})
	q.keys.add(it)
}

// Head returns the item to be delivered next.
func (q *Queue) Head() (e Entry, ok bool) {
	if len(q.waiting) == 0 {
		return Entry{}, false
	}
	return q.waiting[0], true
}

// Pending returns how many items wait, offered ones included.
func (q *Queue) Pending() int { return len(q.waiting) + len(q.offered) }

// PendingBytes returns the size of the bodies of what waits.
func (q *Queue) PendingBytes() int {
	n := 0
	for _, list := range [][]Entry{q.offered, q.waiting} {
		for i := range list {
			n += Size(list[i].Item.Body)
		}
	}
	return n
}

// Size returns how much a body counts against limits.
func Size(b events.Body) int { return len(b.Text) + len(b.Data) }

// Waiting returns what waits in order of delivery, beginning with what is offered.
func (q *Queue) Waiting() []events.Item { return items(slices.Concat(q.offered, q.waiting)) }

// Unresolved returns the items of which nobody knows whether they were taken.
func (q *Queue) Unresolved() []events.Item { return items(q.unresolved) }

// Declines returns how often a waiting item was declined in a row.
func (q *Queue) Declines(id events.ReceiptID) int {
	for _, e := range slices.Concat(q.offered, q.waiting) {
		if e.Item.Receipt == id {
			return e.Declines
		}
	}
	return 0
}

// Open returns the open offer and its items.
func (q *Queue) Open() (o Offer, its []events.Item, ok bool) {
	if q.offer == nil {
		return Offer{}, nil, false
	}
	return *q.offer, items(q.offered), true
}

func items(entries []Entry) []events.Item {
	out := make([]events.Item, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Item)
	}
	return out
}

func (q *Queue) holds(id events.ReceiptID) bool {
	is := func(e Entry) bool { return e.Item.Receipt == id }
	return slices.ContainsFunc(q.waiting, is) || slices.ContainsFunc(q.offered, is) ||
		slices.ContainsFunc(q.unresolved, is)
}

// take removes an item from wherever it is held.
func (q *Queue) take(id events.ReceiptID) (e Entry, ok bool) {
	for _, list := range []*[]Entry{&q.waiting, &q.offered, &q.unresolved} {
		i := slices.IndexFunc(*list, func(e Entry) bool { return e.Item.Receipt == id })
		if i < 0 {
			continue
		}
		e = (*list)[i]
		*list = slices.Delete(*list, i, i+1)
		if len(*list) == 0 {
			*list = nil
		}
		return e, true
	}
	return Entry{}, false
}
