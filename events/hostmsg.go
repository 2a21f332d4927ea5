package events

// Offer is what a host is told of queued items (kx.host ... .offer). It answers
// with [Accept] or [Decline] within the deadline.
type Offer struct {
	Session    SessionID `json:"session"`
	Epoch      Epoch     `json:"epoch"`
	Fence      Fence     `json:"fence"`
	Offer      OfferID   `json:"offer"`
	Items      []Item    `json:"items"` // to be handled in one turn, in this order
	DeadlineMS int64     `json:"deadline_ms"`
	Names      Names     `json:"names"`
}

// Steer tells a host of items for the running turn (kx.host ... .steer). It answers
// with [Accept], naming that turn, or [Decline].
type Steer struct {
	Session    SessionID `json:"session"`
	Epoch      Epoch     `json:"epoch"`
	Fence      Fence     `json:"fence"`
	Offer      OfferID   `json:"offer"`
	Turn       TurnID    `json:"turn"`
	Items      []Item    `json:"items"`
	DeadlineMS int64     `json:"deadline_ms"`
}

// InterruptTurn tells a host to abort a turn and end it (kx.host ... .interrupt).
type InterruptTurn struct {
	Session    SessionID `json:"session"`
	Turn       TurnID    `json:"turn"`
	Reason     string    `json:"reason"`
	DeadlineMS int64     `json:"deadline_ms"`
}

// HostDetach tells a host that it no longer drives a session (kx.host ... .detached).
type HostDetach struct {
	Session SessionID    `json:"session"`
	Fence   Fence        `json:"fence"`
	Reason  DetachReason `json:"reason"`
}

// StartOrder tells an executor to run (kx.exec ... .start). It answers with
// [ReportStarted] or [ReportRefused].
type StartOrder struct {
	Session SessionID     `json:"session"`
	Epoch   Epoch         `json:"epoch"`
	Request ExecRequested `json:"request"`
	Names   Names         `json:"names"`
}

// StopOrder tells an executor to end an exec (kx.exec ... .stop).
type StopOrder struct {
	Session SessionID `json:"session"`
	Exec    ExecID    `json:"exec"`
	GraceMS *int64    `json:"grace_ms,omitempty"`
	Reason  string    `json:"reason"`
}
