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

// ModeEnqueue waits, in order. The other modes are refused as unsupported until a
// host and bus that do them meet.
const (
	ModeEnqueue   Mode = "enqueue"
	ModeMerge     Mode = "merge"
	ModeSteer     Mode = "steer"
	ModeInterrupt Mode = "interrupt"
	ModeReject    Mode = "reject"
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
	// BodyDigest is the SHA-256 of what an idempotency key is compared on.
	BodyDigest string    `json:"body_digest"`
	OnReset    OnReset   `json:"on_reset"`
	Epoch      Epoch     `json:"epoch"` // in which it was queued
	QueuedAt   time.Time `json:"queued_at"`
	Sequence   Sequence  `json:"sequence,omitempty"` // of its queued event; set by the fold
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
}

// ContinuationRequeued puts offered items back to the head of the queue.
type ContinuationRequeued struct {
	Offer  OfferID     `json:"offer"`
	Items  []ReceiptID `json:"items"`
	Reason string      `json:"reason"`
	// DelayMS is how long they are not offered again.
	DelayMS int64 `json:"delay_ms,omitempty"`
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
