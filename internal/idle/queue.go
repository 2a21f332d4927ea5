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

	offer      events.OfferID // the last it was part of
	unfit      string         // why it must be invalidated
	free       bool           // was held once and is not held again
	interrupts events.TurnID  // the turn that it aborts
	passedOver events.TurnID  // the turn that did not take it as a steer
}

// Offer is what a host was asked to take.
type Offer struct {
	ID       events.OfferID
	Items    []events.ReceiptID
	Host     events.PrincipalName
	Instance events.Instance
	At       time.Time
	Deadline time.Duration
	// Turn is set for a steer: the running turn that is to take the items.
	Turn events.TurnID
}

// Due returns when the host must have answered.
func (o Offer) Due() time.Time { return o.At.Add(o.Deadline) }

// Queue is what waits for a session, and where each receipt stands. The zero value
// is empty and ready.
type Queue struct {
	waiting    []Entry // in order of delivery
	scheduled  []Entry // not due yet, the earliest first
	held       []Entry // automatic ones over the budget
	offered    []Entry // those of the open offer
	unresolved []Entry
	offer      *Offer
	automatic  int // accepted in a row without one of a user
	receipts   map[events.ReceiptID]Standing
	ended      []events.ReceiptID // of receipts, the oldest first
	keys       keyring
	whole      bool // nothing is forgotten
}

// Enqueue puts an item at the end, or keeps it until it is due. An item that is held
// already or has moved on since is left as it is.
func (q *Queue) Enqueue(it events.Item) { q.enqueue(it, "") }

// Interrupt puts an item to the head, behind others of its kind: it is to be offered
// when the running turn has been aborted for it.
func (q *Queue) Interrupt(it events.Item, running events.TurnID) { q.enqueue(it, running) }

func (q *Queue) enqueue(it events.Item, interrupts events.TurnID) {
	if st, ok := q.receipts[it.Receipt]; ok && (st.State != events.StateQueued || q.holds(it.Receipt)) {
		return
	}
	e := Entry{Item: it, interrupts: interrupts}
	switch {
	case !it.NotBefore.IsZero():
		q.schedule(e)
	case interrupts != "":
		i := slices.IndexFunc(q.waiting, func(e Entry) bool { return e.interrupts != interrupts })
		if i < 0 {
			i = len(q.waiting)
		}
		q.waiting = slices.Insert(q.waiting, i, e)
	default:
		q.waiting = append(q.waiting, e)
	}
	q.stand(it.Receipt, Standing{
		Epoch: it.Epoch, Sequence: it.Sequence, State: events.StateQueued, Sender: it.Sender,
		Mode: it.Mode, Asked: it.Asked, keyed: it.IdempotencyKey != "",
	})
	q.unkey(q.keys.add(it))
}

func (q *Queue) schedule(e Entry) {
	i := slices.IndexFunc(q.scheduled, func(o Entry) bool { return o.Item.NotBefore.After(e.Item.NotBefore) })
	if i < 0 {
		i = len(q.scheduled)
	}
	q.scheduled = slices.Insert(q.scheduled, i, e)
}

// Pending returns how many items wait to be delivered now, offered ones included.
func (q *Queue) Pending() int { return len(q.waiting) + len(q.offered) }

// Kept returns how many items may still be delivered, those included that are not due
// or are held. Unresolved ones do not count.
func (q *Queue) Kept() int { return q.Pending() + len(q.scheduled) + len(q.held) }

// KeptBytes returns the size of the bodies of what is kept.
func (q *Queue) KeptBytes() int {
	n := 0
	for _, list := range q.kept() {
		for i := range list {
			n += Size(list[i].Item.Body)
		}
	}
	return n
}

// Size returns how much a body counts against limits.
func Size(b events.Body) int { return len(b.Text) + len(b.Data) }

// kept are the lists of what may still be delivered, in order of delivery.
func (q *Queue) kept() [][]Entry { return [][]Entry{q.offered, q.waiting, q.held, q.scheduled} }

// Waiting returns what may still be delivered: what is offered, what waits in order of
// delivery, what is held and what is not due.
func (q *Queue) Waiting() []events.Item { return items(slices.Concat(q.kept()...)) }

// Item returns an item that may still be delivered or is unresolved.
func (q *Queue) Item(id events.ReceiptID) (it events.Item, ok bool) {
	for _, list := range append(q.kept(), q.unresolved) {
		if i := index(list, id); i >= 0 {
			return list[i].Item, true
		}
	}
	return events.Item{}, false
}

// Held reports whether an item is kept back by the budget.
func (q *Queue) Held(id events.ReceiptID) bool { return index(q.held, id) >= 0 }

// LastOffer returns the offer that an unresolved item was last part of.
func (q *Queue) LastOffer(id events.ReceiptID) (o events.OfferID, ok bool) {
	i := index(q.unresolved, id)
	if i < 0 {
		return "", false
	}
	return q.unresolved[i].offer, true
}

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

func index(list []Entry, id events.ReceiptID) int {
	for i := range list { // an entry is too large to be copied for a look
		if list[i].Item.Receipt == id {
			return i
		}
	}
	return -1
}

func (q *Queue) holds(id events.ReceiptID) bool {
	_, ok := q.Item(id)
	return ok
}

func (q *Queue) lists() []*[]Entry {
	return []*[]Entry{&q.waiting, &q.offered, &q.unresolved, &q.held, &q.scheduled}
}

// at returns where an item is held, or nil.
func (q *Queue) at(id events.ReceiptID) *Entry {
	for _, list := range q.lists() {
		if i := index(*list, id); i >= 0 {
			return &(*list)[i]
		}
	}
	return nil
}

// take removes an item from wherever it is held.
func (q *Queue) take(id events.ReceiptID) (e Entry, ok bool) {
	for _, list := range q.lists() {
		if e, ok = takeFrom(list, id); ok {
			return e, true
		}
	}
	return Entry{}, false
}

func takeFrom(list *[]Entry, id events.ReceiptID) (e Entry, ok bool) {
	i := index(*list, id)
	if i < 0 {
		return Entry{}, false
	}
	e = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	if len(*list) == 0 {
		*list = nil
	}
	return e, true
}
