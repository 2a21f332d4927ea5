package events

import "time"

// Lifetime says what ends a session by itself.
type Lifetime string

const (
	// LifetimeDurable sessions outlive every process; only a call, a reset or one
	// of the session's own limits ends an epoch. The default.
	LifetimeDurable Lifetime = "durable"
	// LifetimeBus sessions end with the bus they were registered at: finalized at
	// its clean stop, or at the next start if it was killed.
	LifetimeBus Lifetime = "bus"
)

// Policy is what a session's registration asks for. Zero fields mean the default.
type Policy struct {
	// Hosts may attach; empty means the profile's default hosts, or, when a host
	// registers, that host.
	Hosts []PrincipalName `json:"hosts,omitempty"`
	// IdleTTLMS ends the epoch after so long without a turn or a message. 0: never.
	IdleTTLMS int64 `json:"idle_ttl_ms,omitempty"`
	// HostGoneMS ends the epoch when its host was lost and none came back for so
	// long. 0: never.
	HostGoneMS int64 `json:"host_gone_ms,omitempty"`
	// Lifetime is durable unless set.
	Lifetime Lifetime `json:"lifetime,omitempty"`
	// Target is where the session's host runs commands by default.
	Target TargetName `json:"target,omitempty"`
	// Peers lets other principals send items of kind peer into the session.
	Peers bool `json:"peers,omitempty"`
	// Approvers are the platform users in whose name a gateway of the session may answer
	// approvals, as that gateway names them. Hosts cannot set it.
	Approvers []PlatformUser `json:"approvers,omitempty"`
	// ToolDefault says what happens to a tool when those asked say nothing in time.
	// Absent: auto.
	ToolDefault ToolDefault `json:"tool_default,omitempty"`
}

// OwnedName is a name with who gave it and in which epoch. Current names lead to
// the session's open epoch; others only to the epoch they were given in.
type OwnedName struct {
	Name
	Owner   PrincipalName `json:"owner"`
	Epoch   Epoch         `json:"epoch"`
	Current bool          `json:"current"`
}

// Anchor is one link of a session's lineage of stored ids, oldest first.
type Anchor struct {
	StoredSessionID StoredSessionID `json:"stored_session_id"`
	Epoch           Epoch           `json:"epoch"`
	Reason          string          `json:"reason,omitempty"`
}

// Carry is the whole state that outlives an epoch. The first event of every epoch
// after the first has one, so that a fold may begin there.
type Carry struct {
	Owner   PrincipalName `json:"owner"`
	Names   []OwnedName   `json:"names,omitempty"`
	Lineage []Anchor      `json:"lineage,omitempty"`
	Policy  Policy        `json:"policy"`
	Home    string        `json:"home,omitempty"`
	Source  string        `json:"source,omitempty"`
	Surface string        `json:"surface,omitempty"`
	// Fence is the highest session fence ever given.
	Fence Fence `json:"fence,omitzero"`
	// Host stays attached over a reset; nil when the session was detached.
	Host *AttachedHost `json:"host,omitempty"`
	// Items wait on, in order.
	Items []Item `json:"items,omitempty"`
	// Answers are those of recent commands, oldest first.
	Answers []CommandAnswer `json:"answers,omitempty"`
	// AnswersFrom is set when older answers did not fit: a command sent before it
	// may have been answered, and nobody knows.
	AnswersFrom time.Time `json:"answers_from,omitzero"`
	// Keys are the idempotency keys of the last 24 h, oldest first, as far as they fit.
	Keys []KeyedReceipt `json:"keys,omitempty"`
	// Execs have not ended: those that outlive the epoch run on, the others are being
	// stopped. Standard input and environment are left out, long arguments are cut.
	Execs []ExecRequested `json:"execs,omitempty"`
	// ExecsStarted are those of Execs whose process runs.
	ExecsStarted []ExecStarted `json:"execs_started,omitempty"`
	// CreatedAt is when the session was registered first.
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Turns is how many turns have started so far, over all epochs.
	Turns int `json:"turns,omitempty"`
}

// KeyedReceipt remembers what a sender's idempotency key was used for.
type KeyedReceipt struct {
	Sender     PrincipalName `json:"sender"`
	Key        string        `json:"key"` // the idempotency key
	BodyDigest string        `json:"body_digest"`
	At         time.Time     `json:"at"`
	Receipt    Receipt       `json:"receipt"`
}

// AttachedHost is the host that drives a session.
type AttachedHost struct {
	Host         PrincipalName `json:"host"`
	Instance     Instance      `json:"instance"`
	Capabilities []Capability  `json:"capabilities,omitempty"`
	Fence        Fence         `json:"fence,omitzero"`
	LeaseTTLMS   int64         `json:"lease_ttl_ms"`
}

// CommandAnswer is what a command was answered, kept so that a repeat gets the same.
type CommandAnswer struct {
	Command CommandID `json:"command"`
	At      time.Time `json:"at"`
	Ordinal Ordinal   `json:"ordinal"`
	Answer  Raw       `json:"answer"`
}

// SessionRegistered gives a conversation its durable identity, or reopens a
// finalized one as a new epoch.
type SessionRegistered struct {
	Names  Names         `json:"names"`
	Owner  PrincipalName `json:"owner"`
	Policy Policy        `json:"policy"`
	// Reopened is true for an epoch after a finalized one; Carry is set then.
	Reopened bool   `json:"reopened,omitempty"`
	Carry    *Carry `json:"carry,omitempty"`
	// ForSubmit is true when a message, not a register command, reopened it.
	ForSubmit bool `json:"for_submit,omitempty"`
}

// SessionAliased adds names to a session.
type SessionAliased struct {
	Names Names         `json:"names"`
	Owner PrincipalName `json:"owner"`
}

// SessionPolicyChanged replaces the session's policy, by an operator's command.
type SessionPolicyChanged struct {
	Policy Policy `json:"policy"` // the whole of it from now on
}

// SessionStarted is appended once per epoch, just before its first turn.
type SessionStarted struct {
	Host PrincipalName `json:"host"`
}

// SessionAttached makes one host instance the driver of the session. The session
// fence is the sequence of this event.
type SessionAttached struct {
	Host             PrincipalName    `json:"host"`
	Instance         Instance         `json:"instance"`
	Capabilities     []Capability     `json:"capabilities,omitempty"`
	LeaseTTLMS       int64            `json:"lease_ttl_ms"`
	RuntimeSessionID RuntimeSessionID `json:"runtime_session_id,omitempty"`
	// Generation of the store, the first part of the fence.
	Generation uint64 `json:"generation"`
}

// DetachReason says why a host no longer drives a session.
type DetachReason string

// Why a host no longer drives a session.
const (
	DetachRequested DetachReason = "requested" // the host asked
	DetachHostLost  DetachReason = "host_lost" // its lease ran out
	DetachReplaced  DetachReason = "replaced"  // another instance of it attached
	DetachFinalized DetachReason = "finalized" // the epoch ended
)

// SessionDetached ends a host's right to drive the session.
type SessionDetached struct {
	Host     PrincipalName `json:"host"`
	Instance Instance      `json:"instance"`
	Reason   DetachReason  `json:"reason"`
}

// SessionIdle is appended once per ended turn, when no other turn runs.
type SessionIdle struct {
	// Turn is the turn whose end made the session idle.
	Turn TurnID `json:"turn"`
	// Reason is how that turn ended.
	Reason            Outcome   `json:"reason"`
	Pending           int       `json:"pending"`
	BackgroundRunning int       `json:"background_running"`
	Since             time.Time `json:"since"`
}

// SessionReanchored moves the session to a new stored id (compression). Epoch and
// runtime id stay; old ids still resolve to the session.
type SessionReanchored struct {
	From   StoredSessionID `json:"from,omitempty"` // the id before; absent if none was known
	To     StoredSessionID `json:"to"`             // the id from now on
	Reason string          `json:"reason,omitempty"`
	Owner  PrincipalName   `json:"owner"`
}

// SessionReset is the first event of a new epoch after a reset.
type SessionReset struct {
	Reason string `json:"reason"`
	Carry  Carry  `json:"carry"`
	// Dropped are the items that did not come along (on_reset: drop).
	Dropped []ReceiptID `json:"dropped,omitempty"`
}

// Reasons by which the bus itself finalizes an epoch; calls give their own.
const (
	ReasonReset        = "reset"
	ReasonIdleExpired  = "idle_expired"
	ReasonHostGone     = "host_gone"
	ReasonBusStopped   = "bus_stopped"
	ReasonBusRestarted = "bus_restarted"
)

// SessionForgotten is appended to a profile's own scope before a session is removed.
type SessionForgotten struct {
	Session SessionID `json:"session"`
	Reason  string    `json:"reason"`
}

// SessionFinalized is the last event of an epoch. The first reason is final. It also
// detaches the host and, unless a reset follows in the same batch, ends what waits.
type SessionFinalized struct {
	Reason string `json:"reason"`
	// Invalidated are the items that waited and will not be delivered.
	Invalidated []ReceiptID `json:"invalidated,omitempty"`
	// Reset is true when a reset follows in the same batch: the host stays attached
	// and what waits goes to the next epoch.
	Reset bool `json:"reset,omitempty"`
}
