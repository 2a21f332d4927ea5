package events

// RegisterTarget declares a target of the calling executor instance, which holds
// the target's lease. Answer: [Selection].
type RegisterTarget struct {
	Spec       TargetSpec `json:"spec"`
	Instance   Instance   `json:"instance"`
	LeaseFence Fence      `json:"lease_fence"`
	TargetCondition
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
	// States are theirs, in the same order.
	States []TargetState `json:"states,omitempty"`
}

// StartExec runs a command in a selected target for a session. Sent by the attached
// host (with its fence) and by operators. Answer: [ExecAnswer].
type StartExec struct {
	Session   SessionID `json:"session"`
	Fence     Fence     `json:"fence,omitzero"`
	Turn      TurnID    `json:"turn,omitempty"`
	Selection Selection `json:"selection"`
	Spec      ExecSpec  `json:"spec"`
	// Ask: true wants a person's word first, where the target's policy leaves that to
	// the requester.
	Ask bool `json:"ask,omitempty"`
}

// ExecAnswer answers [StartExec] and [StopExec].
type ExecAnswer struct {
	Exec ExecID `json:"exec"`
	// Approval is what the exec waits for; absent when it is started at once.
	Approval ApprovalID `json:"approval,omitempty"`
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
	// Imported: true asks for the output that came with an imported record.
	Imported bool `json:"imported,omitempty"`
	// TipOnly asks for no chunks, only for what is stored.
	TipOnly bool `json:"tip_only,omitempty"`
	// Audit also asks which chunk numbers are missing, which costs a read of all
	// chunks. Only a lost connection can make holes, so ask after one.
	Audit bool `json:"audit,omitempty"`
	// Pulse asks for Position of the answer alone: that of the newest chunk of any exec. It
	// reads no chunk, which a bus keeps in memory for a while.
	Pulse bool `json:"pulse,omitempty"`
}

// OutputPage ends a page of output.
type OutputPage struct {
	// Next is where to go on; 0 at the end of what is stored.
	Next Sequence `json:"next,omitempty"`
	// Stored is the number of the last stored chunk, or of the last one of a page that is not
	// the last; chunks are numbered from 1.
	Stored uint64 `json:"stored"`
	// Position is the stream sequence of that chunk, or what Pulse asks for.
	Position Sequence `json:"position,omitempty"`
	// Missing are the holes below Stored, when asked for.
	Missing []ChunkRange `json:"missing,omitempty"`
}

// ChunkRange is a range of chunk numbers, both ends included.
type ChunkRange struct {
	From uint64 `json:"from"` // the first number
	To   uint64 `json:"to"`   // the last number
}
