package events

// ReportTarget is the executor's word on the condition of a target that it has registered.
// Answer: [Done].
type ReportTarget struct {
	Name       TargetName `json:"name"`
	Instance   Instance   `json:"instance"`
	Generation uint64     `json:"generation"`
	TargetCondition
}

// ReportTargetAttached is the executor's word that a session has its exclusive target.
// Answer: [Done].
type ReportTargetAttached struct {
	Name     TargetName `json:"name"`
	Instance Instance   `json:"instance"`
	Session  SessionID  `json:"session"`
	Epoch    Epoch      `json:"epoch"`
}

// ReportTargetDetached is the executor's word that a session has it no longer. Answer:
// [Done].
type ReportTargetDetached struct {
	Name     TargetName `json:"name"`
	Instance Instance   `json:"instance"`
	Session  SessionID  `json:"session"`
	Epoch    Epoch      `json:"epoch"`
	Reason   string     `json:"reason"`
}

// DetachTarget gives an exclusive target back. Sent by operators, and by the host that
// drives the session that has it. Answer: [Done], once its executor was told; the end is
// the detached event. It is refused as busy while commands of the session run there.
type DetachTarget struct {
	Name TargetName `json:"name"`
	// Fence is that of the host; an operator needs none.
	Fence Fence `json:"fence,omitzero"`
}

// TargetState is what is known of a registered target beside its registration.
type TargetState struct {
	Name TargetName `json:"name"`
	// Live: its executor holds the target's lease.
	Live bool `json:"live"`
	// Holder is the session that has the exclusive target.
	Holder *TargetHolder `json:"holder,omitempty"`
}

// TargetHolder is a session that has an exclusive target to itself.
type TargetHolder struct {
	Session SessionID `json:"session"`
	Epoch   Epoch     `json:"epoch"`
}

// ReleaseOrder tells an executor that a session is to lose its exclusive target
// (kx.exec ... .release).
type ReleaseOrder struct {
	Target  TargetName `json:"target"`
	Session SessionID  `json:"session"`
	Epoch   Epoch      `json:"epoch"`
	Reason  string     `json:"reason"`
}
