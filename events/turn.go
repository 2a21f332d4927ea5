package events

// Capability is something a host can do beyond running turns.
type Capability string

// What hosts may declare at attach.
const (
	CapSteer           Capability = "steer"
	CapInterrupt       Capability = "interrupt"
	CapMerge           Capability = "merge"
	CapIdempotentOffer Capability = "idempotent_offer"
)

// Outcome is how a turn ended.
type Outcome string

// How a turn ends.
const (
	OutcomeCompleted Outcome = "completed"
	OutcomeFailed    Outcome = "failed"
	OutcomeAborted   Outcome = "aborted"
	OutcomeLost      Outcome = "lost" // its host is gone; nobody knows more
)

// TurnStarted says that the host took an offer and runs it as one turn.
type TurnStarted struct {
	Turn     TurnID        `json:"turn"`
	Offer    OfferID       `json:"offer"`
	Items    []ReceiptID   `json:"items"`
	Host     PrincipalName `json:"host"`
	Instance Instance      `json:"instance"`
	TaskID   TaskID        `json:"task_id,omitempty"`
}

// TurnSteered says that the host took items into a running turn; they settle with it.
type TurnSteered struct {
	Turn  TurnID      `json:"turn"`
	Offer OfferID     `json:"offer"`
	Items []ReceiptID `json:"items"`
}

// TurnEnded ends a turn, once, and settles its items.
type TurnEnded struct {
	Turn    TurnID  `json:"turn"`
	Outcome Outcome `json:"outcome"`
	Reply   string  `json:"reply,omitempty"`
	// ReplyTruncated is true when the middle of the reply was cut to fit.
	ReplyTruncated bool `json:"reply_truncated,omitempty"`
	// Error says what went wrong when the outcome is not completed.
	Error             string      `json:"error,omitempty"`
	Settled           []ReceiptID `json:"settled"`
	Pending           int         `json:"pending"`
	BackgroundRunning int         `json:"background_running"`
}

// TurnReportedLate keeps what a host reported of a turn already ended as lost. It
// changes no state.
type TurnReportedLate struct {
	Turn    TurnID  `json:"turn"`
	Outcome Outcome `json:"outcome"`
	Reply   string  `json:"reply,omitempty"`
	Error   string  `json:"error,omitempty"`
}
