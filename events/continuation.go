package events

import "time"

// ItemKind says who speaks through an item.
type ItemKind string

// The kinds of items.
const (
	ItemUser         ItemKind = "user"
	ItemSystem       ItemKind = "system"
	ItemJobExit      ItemKind = "job_exit"
	ItemSetupReceipt ItemKind = "setup_receipt"
	ItemPeer         ItemKind = "peer"
)

// Mode says what happens to an item while a turn runs.
type Mode string

// The modes. When the session is idle all of them are offered at once, merge after its
// window.
const (
	ModeEnqueue   Mode = "enqueue"   // waits, in order
	ModeMerge     Mode = "merge"     // adjacent ones within the window become one turn
	ModeSteer     Mode = "steer"     // goes into the running turn
	ModeInterrupt Mode = "interrupt" // aborts the running turn and is offered next
	ModeReject    Mode = "reject"    // is refused as busy
)

// Binding is something an item can be tied to: when it changes, the item is
// invalidated, and changing back does not revive it.
type Binding string

// What an item can be tied to, as it is when the item is queued.
const (
	BindSource  Binding = "source"  // the session's source
	BindSurface Binding = "surface" // the session's surface
	BindEpoch   Binding = "epoch"   // the open epoch
)

// OnReset says what a reset does with a waiting item.
type OnReset string

// What a reset does with a waiting item.
const (
	OnResetCarry OnReset = "carry" // the default for kind user
	OnResetDrop  OnReset = "drop"
)

// Body is what an item says.
type Body struct {
	Text string `json:"text"`
	// Data is for the host alone and passes through untouched.
	Data Raw `json:"data,omitempty"`
}

// Item is a message that waits to be delivered into a session.
type Item struct {
	Receipt        ReceiptID     `json:"receipt"`
	Kind           ItemKind      `json:"kind"`
	Mode           Mode          `json:"mode"`
	Body           Body          `json:"body"`
	Sender         PrincipalName `json:"sender"`
	IdempotencyKey string        `json:"idempotency_key,omitempty"`
	// BodyDigest is the SHA-256 of what an idempotency key is compared on: the body as
	// it was submitted, also after an edit.
	BodyDigest string    `json:"body_digest"`
	OnReset    OnReset   `json:"on_reset"`
	Epoch      Epoch     `json:"epoch"` // in which it was queued
	QueuedAt   time.Time `json:"queued_at"`
	Sequence   Sequence  `json:"sequence,omitempty"` // of its queued event; set by the fold
	// Asked is the mode asked for; absent when it is the mode in force.
	Asked Mode `json:"asked,omitempty"`
	// Allow are the modes to take, in this order, if the host cannot do the mode.
	Allow []Mode `json:"allow,omitempty"`
	// Bind ties the item to what the session is now.
	Bind []Binding `json:"bind,omitempty"`
	// NotBefore is when the item is due; it does not hold up others until then.
	NotBefore time.Time `json:"not_before,omitzero"`
	// ExpiresAt is when the item is of no use any more unless it was accepted.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// ItemState is where an item stands.
type ItemState string

// The states of a receipt.
const (
	StateQueued      ItemState = "queued"
	StateOffered     ItemState = "offered"
	StateAccepted    ItemState = "accepted"
	StateSettled     ItemState = "settled"
	StateExpired     ItemState = "expired"
	StateCancelled   ItemState = "cancelled"
	StateInvalidated ItemState = "invalidated"
	StateUnresolved  ItemState = "unresolved"
	StateDiscarded   ItemState = "discarded"
)

// ContinuationQueued puts an item at the end of the session's queue.
type ContinuationQueued struct {
	Item Item `json:"item"`
}

// ContinuationOffered is written before the host is told.
type ContinuationOffered struct {
	Offer    OfferID       `json:"offer"`
	Items    []ReceiptID   `json:"items"`
	Host     PrincipalName `json:"host"`
	Instance Instance      `json:"instance"`
	// DeadlineMS is how long the host has to answer.
	DeadlineMS int64 `json:"deadline_ms"`
	// Turn is set for a steer: the items are to go into this running turn.
	Turn TurnID `json:"turn,omitempty"`
}

// ContinuationRequeued puts offered or unresolved items back to the head of the queue.
type ContinuationRequeued struct {
	Offer  OfferID     `json:"offer"`
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason"`
	// DelayMS is how long they are not offered again.
	DelayMS int64 `json:"delay_ms,omitempty"`
	// Declined is true when the host did not want them now.
	Declined bool `json:"declined,omitempty"`
}

// ContinuationUnresolved says that nobody can know whether the host took the items.
// They are not offered again by guess and block nothing else.
type ContinuationUnresolved struct {
	Offer  OfferID     `json:"offer"`
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason"`
}

// ContinuationInvalidated ends items that no longer fit what they were bound to.
type ContinuationInvalidated struct {
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason"`
}

// ContinuationEdited gives a waiting item another body.
type ContinuationEdited struct {
	Receipt ReceiptID `json:"receipt"`
	Body    Body      `json:"body"`
}

// ContinuationDowngraded says that an item takes another mode than it was sent with,
// because the host cannot do that one.
type ContinuationDowngraded struct {
	Receipt ReceiptID `json:"receipt"`
	From    Mode      `json:"from"` // the mode asked for
	To      Mode      `json:"to"`   // the mode in force
	Reason  string    `json:"reason"`
}

// ContinuationHeld keeps automatic items back because too many came in a row without
// one of a user. They wait for a user's item to be accepted, or for a requeue.
type ContinuationHeld struct {
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason"`
}

// ContinuationReleased lets items be delivered that were held or were not due yet.
type ContinuationReleased struct {
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason"`
}

// ContinuationExpired ends items that were not accepted in their time.
type ContinuationExpired struct {
	Items []ReceiptID `json:"items"`
}

// ContinuationCancelled ends items that their sender or an operator took back.
type ContinuationCancelled struct {
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason,omitempty"`
}

// ContinuationDiscarded ends unresolved items for good.
type ContinuationDiscarded struct {
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason,omitempty"`
}
