package events

import "time"

// Register asks for a session with these names: an existing one that has any of
// them, or a new one. Sent by hosts, gateways and operators. Answer: [Registered].
type Register struct {
	Names  Names  `json:"names"`
	Policy Policy `json:"policy"`
}

// Registered answers [Register].
type Registered struct {
	Session SessionID `json:"session"`
	Epoch   Epoch     `json:"epoch"`
	Created bool      `json:"created"`
}

// Alias adds names to a session. Answer: [Registered].
type Alias struct {
	To    string `json:"to"`
	Names Names  `json:"names"`
}

// SetPolicy changes a session's policy; what is absent stays as it is. Sent by operators.
// Answer: [PolicyAnswer].
type SetPolicy struct {
	To string `json:"to"`
	// Peers opens the session to items of kind peer, or closes it.
	Peers *bool `json:"peers,omitempty"`
	// Approvers replaces the list; an empty one clears it.
	Approvers *[]PlatformUser `json:"approvers,omitempty"`
	// ToolDefault says what happens to a tool when those asked say nothing in time.
	ToolDefault *ToolDefault `json:"tool_default,omitempty"`
	// Hosts replaces the list; an empty one means the profile's default hosts.
	Hosts *[]PrincipalName `json:"hosts,omitempty"`
}

// PolicyAnswer answers [SetPolicy] with the policy from now on.
type PolicyAnswer struct {
	Session SessionID `json:"session"`
	Policy  Policy    `json:"policy"`
}

// Attach makes the calling host instance the driver of a session. Answer: [Attached].
type Attach struct {
	Session      SessionID    `json:"session"`
	Instance     Instance     `json:"instance"`
	Capabilities []Capability `json:"capabilities,omitempty"`
	// LeaseTTLMS is how long the host may be silent. Default 15,000; at least 2,000.
	LeaseTTLMS       int64            `json:"lease_ttl_ms,omitempty"`
	RuntimeSessionID RuntimeSessionID `json:"runtime_session_id,omitempty"`
	// KnownOffers are offers this instance has seen; an open offer it does not know
	// is offered again.
	KnownOffers []OfferID `json:"known_offers,omitempty"`
}

// Attached answers [Attach].
type Attached struct {
	Session SessionID `json:"session"`
	Epoch   Epoch     `json:"epoch"`
	// Fence goes into every later command of the host about this session.
	Fence      Fence      `json:"fence"`
	LeaseTTLMS int64      `json:"lease_ttl_ms"`
	Target     TargetName `json:"target,omitempty"`
}

// Detach gives the session back. Answer: [Done].
type Detach struct {
	Session SessionID `json:"session"`
	Fence   Fence     `json:"fence"`
}

// Reanchor moves the session to a new stored id. Answer: [Registered].
type Reanchor struct {
	Session         SessionID       `json:"session"`
	Fence           Fence           `json:"fence"`
	StoredSessionID StoredSessionID `json:"stored_session_id"`
	Reason          string          `json:"reason,omitempty"`
}

// Reset finalizes the open epoch and opens the next. A running turn is interrupted
// first. Sent by gateways, operators and the attached host. Answer: [EpochAnswer].
type Reset struct {
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// Finalize ends the open epoch. Sent like [Reset]. Answer: [EpochAnswer].
type Finalize struct {
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// Forget removes a session: its record but for the event that ended it, its names, output,
// snapshots, and dead letters about it. An open epoch is finalized first. Answer: [Done].
type Forget struct {
	Session SessionID `json:"session"`
	Reason  string    `json:"reason"`
}

// EpochAnswer answers [Reset] with the opened, [Finalize] with the ended epoch.
type EpochAnswer struct {
	Session SessionID `json:"session"`
	Epoch   Epoch     `json:"epoch"`
	Reason  string    `json:"reason"`
}

// Done answers commands that have nothing more to say.
type Done struct {
	Sequence Sequence `json:"sequence,omitempty"`
}

// SessionList asks for sessions. Answer: [Sessions].
type SessionList struct {
	// After is the last session of the page before; pages are in id order.
	After SessionID `json:"after,omitempty"`
	// Limit is 1 to 1,000; default 1,000.
	Limit int `json:"limit,omitempty"`
	// Host keeps only sessions that want this host.
	Host PrincipalName `json:"host,omitempty"`
	// Open keeps only sessions whose epoch is open.
	Open bool `json:"open,omitempty"`
}

// Sessions is a page of sessions.
type Sessions struct {
	Sessions []SessionSummary `json:"sessions"`
	More     bool             `json:"more"`
}

// SessionStatus is a session's state in one word.
type SessionStatus string

// A session's state in one word.
const (
	StatusRegistered SessionStatus = "registered" // open, no host attached
	StatusAttached   SessionStatus = "attached"   // a host drives it, no turn runs
	StatusRunning    SessionStatus = "running"    // a turn runs
	StatusFinalized  SessionStatus = "finalized"  // the epoch has ended
)

// SessionSummary is one line of a list of sessions.
type SessionSummary struct {
	Session    SessionID     `json:"session"`
	Epoch      Epoch         `json:"epoch"`
	Status     SessionStatus `json:"status"`
	Names      Names         `json:"names"`
	Keys       []string      `json:"keys"` // gateway session keys, oldest first
	Host       PrincipalName `json:"host,omitempty"`
	Turn       TurnID        `json:"turn,omitempty"`
	Pending    int           `json:"pending"`
	Turns      int           `json:"turns"`
	CreatedAt  time.Time     `json:"created_at"`
	LastAt     time.Time     `json:"last_at"`
	LastOrd    Ordinal       `json:"last_ordinal"`
	LastSeq    Sequence      `json:"last_sequence"`
	WaitingFor string        `json:"waiting_for,omitempty"`
	// WantedHosts may attach.
	WantedHosts []PrincipalName `json:"wanted_hosts,omitempty"`
}

// SessionShow asks for the folded state. Answer: [SessionView].
type SessionShow struct {
	To string `json:"to"`
}

// FindSession asks which session something belongs to: a receipt, a turn, an exec, or a
// session by id or name. Answer: [FoundSession].
type FindSession struct {
	ID string `json:"id"` // what is looked for
}

// FoundKind is what an id names.
type FoundKind string

// What an id names.
const (
	FoundSessionKind FoundKind = "session"
	FoundReceipt     FoundKind = "receipt"
	FoundTurn        FoundKind = "turn"
	FoundExec        FoundKind = "exec"
)

// FoundSession answers [FindSession].
type FoundSession struct {
	Session SessionID `json:"session"`
	Kind    FoundKind `json:"kind"`
	// Imported is true when only an imported record of the session is there.
	Imported bool `json:"imported,omitempty"`
}

// SessionView is a session's folded state and what it waits for.
type SessionView struct {
	SessionSummary
	Policy   Policy        `json:"policy"`
	AllNames []OwnedName   `json:"all_names"`
	Lineage  []Anchor      `json:"lineage,omitempty"`
	Attached *AttachedHost `json:"attached,omitempty"`
	// Started is true once a turn of the epoch has started.
	Started bool       `json:"started"`
	Reason  string     `json:"finalize_reason,omitempty"`
	Running *TurnView  `json:"running,omitempty"`
	Queue   []ItemView `json:"queue"`
	Execs   []ExecView `json:"execs,omitempty"`
}
