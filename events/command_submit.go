package events

import "time"

// Submit puts a message into a session. Answer: [Receipt].
type Submit struct {
	// To is a session id or any name.
	To   string `json:"to"`
	Body Body   `json:"body"`
	// Mode is "enqueue" unless set.
	Mode Mode `json:"mode,omitempty"`
	// Allow are the modes to take, in this order, if the host cannot do the mode.
	Allow []Mode `json:"allow,omitempty"`
	// Kind is "user" unless set.
	Kind           ItemKind `json:"kind,omitempty"`
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	OnReset        OnReset  `json:"on_reset,omitempty"`
	// Follow lets a name of an ended epoch mean the session as it is now.
	Follow bool `json:"follow,omitempty"`
	// TTLMS ends the item unless it is accepted within so long of being due. 0: never.
	TTLMS int64 `json:"ttl_ms,omitempty"`
	// Bind ties the item to what the session is now.
	Bind []Binding `json:"bind,omitempty"`
	// At is when to deliver, never earlier; a time in the past is now.
	At time.Time `json:"at,omitzero"`
	// InMS delivers after so long, by the bus's clock. It excludes At.
	InMS int64 `json:"in_ms,omitempty"`
}

// Receipt tells where an item stands.
type Receipt struct {
	ID       ReceiptID `json:"id"`
	Session  SessionID `json:"session"`
	Epoch    Epoch     `json:"epoch"`
	Sequence Sequence  `json:"sequence"`
	State    ItemState `json:"state"`
	// Outcome, Turn and Reason are set as far as the state has them.
	Outcome Outcome `json:"outcome,omitempty"`
	Turn    TurnID  `json:"turn,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// Mode is the one in force.
	Mode Mode `json:"mode,omitempty"`
	// DowngradedFrom is the mode asked for, when another is in force.
	DowngradedFrom Mode `json:"downgraded_from,omitempty"`
	// Late is what the host reported after the item was settled as lost.
	Late Outcome `json:"late,omitempty"`
}

// Fate is what became of an item, in one word.
type Fate string

// What can have become of an item.
const (
	FateNeverStarted Fate = "never_started" // it waits, or will not be delivered
	FateRunning      Fate = "running"
	FateEnded        Fate = "ended"         // see the outcome
	FateReportedLate Fate = "reported_late" // lost, and reported after all: see Late
	FateUnresolved   Fate = "unresolved"    // nobody can know; requeue or discard it
)

// Fate says what became of the item. A discarded one stays unresolved: nobody knows.
func (r Receipt) Fate() Fate {
	switch r.State {
	case StateAccepted:
		return FateRunning
	case StateUnresolved, StateDiscarded:
		return FateUnresolved
	case StateSettled:
		if r.Late != "" {
			return FateReportedLate
		}
		return FateEnded
	}
	return FateNeverStarted
}

// Over reports whether the item's state is final. A lost one may still get Late.
func (r Receipt) Over() bool {
	switch r.State {
	case StateSettled, StateExpired, StateCancelled, StateInvalidated, StateDiscarded:
		return true
	}
	return false
}

// ReceiptShow asks for a receipt by id, at any time. Answer: [Receipt].
type ReceiptShow struct {
	ID ReceiptID `json:"id"`
}

// Cancel takes back an item that was not accepted. Sent by its sender or an operator.
// Answer: [Receipt].
type Cancel struct {
	Receipt ReceiptID `json:"receipt"`
	Reason  string    `json:"reason,omitempty"`
}

// Edit gives an item that was not accepted another body. Sent like [Cancel]. An open
// offer of it is withdrawn and made again. Answer: [Receipt].
type Edit struct {
	Receipt ReceiptID `json:"receipt"`
	Body    Body      `json:"body"`
}

// Requeue puts an unresolved item back to the head of the queue, or releases a held
// one. Sent like [Cancel]. Answer: [Receipt].
type Requeue struct {
	Receipt ReceiptID `json:"receipt"`
}

// Discard ends an unresolved item. Sent like [Cancel]. Answer: [Receipt].
type Discard struct {
	Receipt ReceiptID `json:"receipt"`
	Reason  string    `json:"reason,omitempty"`
}
