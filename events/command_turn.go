package events

import "time"

// TurnView is what is known of a turn.
type TurnView struct {
	Turn      TurnID        `json:"turn"`
	Session   SessionID     `json:"session"`
	Epoch     Epoch         `json:"epoch"`
	State     TurnState     `json:"state"`
	Outcome   Outcome       `json:"outcome,omitempty"`
	Reply     string        `json:"reply,omitempty"`
	Error     string        `json:"error,omitempty"`
	Host      PrincipalName `json:"host"`
	Items     []ReceiptID   `json:"items"`
	TaskID    TaskID        `json:"task_id,omitempty"`
	StartedAt time.Time     `json:"started_at"`
	EndedAt   time.Time     `json:"ended_at,omitzero"`
	// Late is what the host reported after the turn was ended as lost.
	Late *TurnReportedLate `json:"late,omitempty"`
}

// TurnState is where a turn stands.
type TurnState string

// Where a turn stands.
const (
	TurnRunning      TurnState = "running"
	TurnEndedState   TurnState = "ended"
	TurnReportedOnce TurnState = "reported_late"
)

// ItemView is an item in the queue.
type ItemView struct {
	Receipt  ReceiptID     `json:"receipt"`
	State    ItemState     `json:"state"`
	Kind     ItemKind      `json:"kind"`
	Text     string        `json:"text"`
	Sender   PrincipalName `json:"sender"`
	QueuedAt time.Time     `json:"queued_at"`
	Mode     Mode          `json:"mode,omitempty"`
	// Reason says why the item is kept back or unresolved.
	Reason    string    `json:"reason,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"` // when the item is due
	ExpiresAt time.Time `json:"expires_at,omitzero"` // when it is of no use any more
}

// ExecView is an exec that has not ended.
type ExecView struct {
	Exec     ExecID        `json:"exec"`
	Turn     TurnID        `json:"turn,omitempty"`
	Target   TargetName    `json:"target"`
	Executor PrincipalName `json:"executor"`
	Argv     []string      `json:"argv"`
	// Started is true once its process runs.
	Started bool `json:"started"`
	PID     int  `json:"pid,omitempty"`
	// Background is true when the session is told of its end.
	Background bool `json:"background,omitempty"`
	// Awaiting is the approval without which it is not started.
	Awaiting ApprovalID `json:"awaiting,omitempty"`
}

// Accept takes an offer as a turn, or a steer into the running turn, which it names.
// The host begins the turn, or tells the agent, only after the answer. Answer:
// [Accepted].
type Accept struct {
	Session SessionID `json:"session"`
	Fence   Fence     `json:"fence"`
	Offer   OfferID   `json:"offer"`
	Turn    TurnID    `json:"turn"`
	TaskID  TaskID    `json:"task_id,omitempty"`
}

// Accepted answers [Accept].
type Accepted struct {
	Turn  TurnID `json:"turn"`
	Epoch Epoch  `json:"epoch"`
}

// Decline refuses an offer; its items go back to the head of the queue. Answer: [Done].
type Decline struct {
	Session SessionID `json:"session"`
	Fence   Fence     `json:"fence"`
	Offer   OfferID   `json:"offer"`
	Reason  string    `json:"reason"`
}

// End reports the end of a turn. Reported again with the same outcome it gets the
// first answer. Answer: [Ended].
type End struct {
	Session           SessionID `json:"session"`
	Fence             Fence     `json:"fence"`
	Turn              TurnID    `json:"turn"`
	Outcome           Outcome   `json:"outcome"`
	Reply             string    `json:"reply,omitempty"`
	ReplyTruncated    bool      `json:"reply_truncated,omitempty"`
	Error             string    `json:"error,omitempty"`
	BackgroundRunning int       `json:"background_running,omitempty"`
}

// Ended answers [End].
type Ended struct {
	Turn    TurnID  `json:"turn"`
	Outcome Outcome `json:"outcome"`
	// Late is true when the turn had been ended as lost before; what was reported
	// is kept but changes nothing.
	Late bool `json:"late,omitempty"`
}

// Interrupt asks the host to abort the running turn; after 10 s without an end the
// turn is lost. Sent by gateways and operators. Answer: [Ended], once it has ended.
type Interrupt struct {
	To     string `json:"to"`
	Reason string `json:"reason"`
	// Turn restricts the interrupt to this turn, so that a late one hits no other.
	Turn TurnID `json:"turn,omitempty"`
}

// TurnList asks for the turns of a session, newest first. Answer: [TurnPage].
type TurnList struct {
	To string `json:"to"`
	// Before is the last turn of the page before.
	Before TurnID `json:"before,omitempty"`
	// Limit is 1 to 1,000; default 100.
	Limit int `json:"limit,omitempty"`
}

// TurnPage is a page of turns, without their replies.
type TurnPage struct {
	Turns []TurnView `json:"turns"`
	More  bool       `json:"more"`
}

// TurnShow asks for a turn by id, at any time. Answer: [TurnView].
type TurnShow struct {
	Turn TurnID `json:"turn"`
}
