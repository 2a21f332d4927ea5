package gateway

import (
	"strconv"

	"keryx/events"
)

// message is one of ours, from its submission until it is settled.
type message struct {
	key     string // idempotency key
	receipt events.ReceiptID
	ended   bool // its turn is over; the front is being told
}

// Tally counts own messages.
type Tally struct {
	// Sent were taken by the bus, or may have been.
	Sent int
	// Completed ended with that outcome.
	Completed int
	// Failed settled otherwise, or were not taken.
	Failed int
}

// outbox keeps the own messages that are not settled. They are known by their
// idempotency keys, which stand in the record, so that it does not matter whether the
// record or the answer to the submission comes first.
type outbox struct {
	prefix    string
	last      int
	byKey     map[string]*message
	byReceipt map[events.ReceiptID]*message
	tally     Tally
}

func (o *outbox) init() {
	o.prefix = events.NewID() + "-"
	o.byKey, o.byReceipt = make(map[string]*message), make(map[events.ReceiptID]*message)
}

// open makes a message to be submitted.
func (o *outbox) open() *message {
	o.last++
	m := &message{key: o.prefix + strconv.Itoa(o.last)}
	o.byKey[m.key] = m
	o.tally.Sent++
	return m
}

// known ties a message to its receipt; nil if it is not ours or settled before.
func (o *outbox) known(key string, id events.ReceiptID) *message {
	m := o.byKey[key]
	if m != nil {
		m.receipt = id
		o.byReceipt[id] = m
	}
	return m
}

// owns reports whether one of the items is an own message.
func (o *outbox) owns(items []events.ReceiptID) bool {
	for _, id := range items {
		if o.byReceipt[id] != nil {
			return true
		}
	}
	return false
}

// end marks the own messages among items as ended, to be settled once that was told.
func (o *outbox) end(items []events.ReceiptID) {
	for _, id := range items {
		if m := o.byReceipt[id]; m != nil {
			m.ended = true
		}
	}
}

// awaitsTurn reports whether a message's turn has not ended.
func (o *outbox) awaitsTurn() bool {
	for _, m := range o.byKey {
		if !m.ended {
			return true
		}
	}
	return false
}

// settle ends the own messages among items and returns how many there were.
func (o *outbox) settle(items []events.ReceiptID, outcome events.Outcome) int {
	n := 0
	for _, id := range items {
		if m := o.byReceipt[id]; m != nil {
			o.drop(m)
			o.count(outcome)
			n++
		}
	}
	return n
}

func (o *outbox) count(outcome events.Outcome) {
	if outcome == events.OutcomeCompleted {
		o.tally.Completed++
	} else {
		o.tally.Failed++
	}
}

// refused ends a message that the bus did not take.
func (o *outbox) refused(m *message) {
	if o.byKey[m.key] == m {
		o.drop(m)
		o.tally.Failed++
	}
}

func (o *outbox) drop(m *message) {
	delete(o.byKey, m.key)
	delete(o.byReceipt, m.receipt)
}

func (o *outbox) waiting() int { return len(o.byKey) }

func (o *outbox) receipts() []events.ReceiptID {
	out := make([]events.ReceiptID, 0, len(o.byReceipt))
	for id := range o.byReceipt {
		out = append(out, id)
	}
	return out
}
