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
}

// Accept takes an offer as a turn. The host begins the turn only after the answer.
// Answer: [Accepted].
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

// TurnShow asks for a turn by id, at any time. Answer: [TurnView].
type TurnShow struct {
	Turn TurnID `json:"turn"`
}

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
}

// ReceiptShow asks for a receipt by id, at any time. Answer: [Receipt].
type ReceiptShow struct {
	ID ReceiptID `json:"id"`
}

// RegisterTarget declares a target of the calling executor instance, which holds
// the target's lease. Answer: [Selection].
type RegisterTarget struct {
	Spec       TargetSpec `json:"spec"`
	Instance   Instance   `json:"instance"`
	LeaseFence Fence      `json:"lease_fence"`
}

// WithdrawTarget takes back a target. Answer: [Done].
type WithdrawTarget struct {
	Name     TargetName `json:"name"`
	Instance Instance   `json:"instance"`
	Reason   string     `json:"reason"`
}

// SelectTarget reads a target's state; it starts nothing. Answer: [Selection].
type SelectTarget struct {
	Name TargetName `json:"name"`
}

// TargetList asks for the profile's targets. Answer: [Targets].
type TargetList struct{}

// Targets is the list of targets.
type Targets struct {
	Targets []TargetRegistered `json:"targets"`
}

// StartExec runs a command in a selected target for a session. Sent by the attached
// host (with its fence) and by operators. Answer: [ExecAnswer].
type StartExec struct {
	Session   SessionID `json:"session"`
	Fence     Fence     `json:"fence,omitzero"`
	Turn      TurnID    `json:"turn,omitempty"`
	Selection Selection `json:"selection"`
	Spec      ExecSpec  `json:"spec"`
}

// ExecAnswer answers [StartExec] and [StopExec].
type ExecAnswer struct {
	Exec ExecID `json:"exec"`
	// OutSubject is where the output appears.
	OutSubject string `json:"out_subject"`
}

// StopExec ends an exec's process tree. Answer: [ExecAnswer], at once; the end is
// the exited event.
type StopExec struct {
	Session SessionID `json:"session"`
	Fence   Fence     `json:"fence,omitzero"`
	Exec    ExecID    `json:"exec"`
	GraceMS *int64    `json:"grace_ms,omitempty"`
}

// ReportStarted is the executor's word that the process runs. Answer: [Done].
type ReportStarted struct {
	Session    SessionID   `json:"session"`
	Instance   Instance    `json:"instance"`
	LeaseFence Fence       `json:"lease_fence"`
	Fact       ExecStarted `json:"fact"`
}

// ReportRefused is the executor's word that the process never ran. Answer: [Done].
type ReportRefused struct {
	Session  SessionID   `json:"session"`
	Instance Instance    `json:"instance"`
	Fact     ExecRefused `json:"fact"`
}

// ReportExited is the executor's word of the end. Answer: [Done].
type ReportExited struct {
	Session  SessionID  `json:"session"`
	Instance Instance   `json:"instance"`
	Fact     ExecExited `json:"fact"`
}

// ReportLost is the executor's word that an exec of a former instance of it is
// gone. Answer: [Done].
type ReportLost struct {
	Session SessionID `json:"session"`
	Fact    ExecLost  `json:"fact"`
}

// Output asks for stored output chunks from a chunk index on. The answer is a page
// of messages as stored (see [OutChunk]), then [OutputPage] with the end marker.
type Output struct {
	Session SessionID `json:"session"`
	Exec    ExecID    `json:"exec"`
	// From is the stream sequence to begin at; 0 for the first kept.
	From Sequence `json:"from,omitempty"`
	// TipOnly asks for no chunks, only for what is stored.
	TipOnly bool `json:"tip_only,omitempty"`
	// Audit also asks which chunk numbers are missing, which costs a read of all
	// chunks. Only a lost connection can make holes, so ask after one.
	Audit bool `json:"audit,omitempty"`
}

// OutputPage ends a page of output.
type OutputPage struct {
	// Next is where to go on; 0 at the end of what is stored.
	Next Sequence `json:"next,omitempty"`
	// Stored is the number of the last stored chunk; chunks are numbered from 1.
	Stored uint64 `json:"stored"`
	// Missing are the holes below Stored, when asked for.
	Missing []ChunkRange `json:"missing,omitempty"`
}

// ChunkRange is a range of chunk numbers, both ends included.
type ChunkRange struct {
	From uint64 `json:"from"` // the first number
	To   uint64 `json:"to"`   // the last number
}

// AcquireLease asks for a lease. Answer: [LeaseAnswer].
type AcquireLease struct {
	Key      LeaseKey `json:"key"`
	Instance Instance `json:"instance"`
	TTLMS    int64    `json:"ttl_ms,omitempty"`
}

// RenewLease extends leases by one ttl each. Answer: [LeaseRenewals].
type RenewLease struct {
	Instance Instance `json:"instance"`
	// Leases are those to renew, all of this instance.
	Leases []LeaseRef `json:"leases"`
}

// LeaseRef names a lease as its holder knows it.
type LeaseRef struct {
	Key   LeaseKey `json:"key"`
	Fence Fence    `json:"fence"`
}

// LeaseRenewals answers [RenewLease], one entry per asked lease in the same order.
type LeaseRenewals struct {
	Results []LeaseRenewal `json:"results"` // in the order asked for
}

// LeaseRenewal is the result for one lease: Error is nil when it was renewed.
type LeaseRenewal struct {
	Key   LeaseKey `json:"key"`
	TTLMS int64    `json:"ttl_ms"`
	Error *Error   `json:"error,omitempty"`
}

// ReleaseLease gives a lease back. A late one of a former holder does nothing.
// Answer: [Done].
type ReleaseLease struct {
	Key      LeaseKey `json:"key"`
	Instance Instance `json:"instance"`
	Fence    Fence    `json:"fence"`
}

// LeaseAnswer answers [AcquireLease].
type LeaseAnswer struct {
	Key   LeaseKey `json:"key"`
	Fence Fence    `json:"fence"`
	TTLMS int64    `json:"ttl_ms"`
}

// LeaseList asks for the profile's leases. Answer: [Leases].
type LeaseList struct{}

// Leases is the list of leases on record.
type Leases struct {
	Leases []LeaseView `json:"leases"` // in key order
}

// LeaseView is one lease on record.
type LeaseView struct {
	Key LeaseKey `json:"key"`
	LeaseRecord
	Revision Sequence `json:"revision"`
}

// LogPage asks for a scope's events from a sequence on. The answer is a page of
// messages as stored, then [LogPageEnd] with the end marker.
type LogPage struct {
	Scope Scope `json:"scope"`
	// From is the first sequence wanted; 0 for the beginning.
	From Sequence `json:"from,omitempty"`
	// Limit is 1 to 1,000; default 1,000.
	Limit int `json:"limit,omitempty"`
}

// LogPageEnd ends a page of the log.
type LogPageEnd struct {
	// Next is where to go on; 0 when the page reached the tip.
	Next Sequence `json:"next,omitempty"`
	// First is the sequence of the oldest kept event; older ones were cut.
	First Sequence `json:"first,omitempty"`
	Tip   Tip      `json:"tip"`
}

// Tip is the newest event of a scope.
type Tip struct {
	Scope    Scope    `json:"scope"`
	Sequence Sequence `json:"sequence"`
	Ordinal  Ordinal  `json:"ordinal"`
}

// LogTips asks for the tips of scopes, at most 1,000; with none named, for those of
// all scopes of the profile, in pages. Answer: [Tips].
type LogTips struct {
	// Scopes are those asked for; none means all of the profile.
	Scopes []Scope `json:"scopes,omitempty"`
	// After is the last scope of the page before; pages are in scope order.
	After Scope `json:"after,omitempty"`
}

// Tips answers [LogTips]. A scope without events is left out.
type Tips struct {
	Tips []Tip `json:"tips"`
	More bool  `json:"more,omitempty"`
}
