package events

import "time"

// ActionDigest is an opaque SHA-256 over everything that an approval is for, in small
// hexadecimal letters.
type ActionDigest string

// ApprovalState is where an approval stands.
type ApprovalState string

// Where an approval stands. All but pending and granted are ends.
const (
	ApprovalStatePending     ApprovalState = "pending"     // nobody has answered
	ApprovalStateGranted     ApprovalState = "granted"     // the action is about to be started
	ApprovalStateConsumed    ApprovalState = "consumed"    // used, once
	ApprovalStateDenied      ApprovalState = "denied"      // somebody said no
	ApprovalStateExpired     ApprovalState = "expired"     // nobody answered in time
	ApprovalStateInvalidated ApprovalState = "invalidated" // what it was for has changed or is not wanted any more
)

// ApprovalRequested asks for a person's word on an exec, which waits for it. It shows
// all that would run; standard input is in the exec's request.
type ApprovalRequested struct {
	Approval  ApprovalID    `json:"approval"`
	Exec      ExecID        `json:"exec"`
	Turn      TurnID        `json:"turn,omitempty"`
	Requester PrincipalName `json:"requester"`
	// Kind is the target's.
	Kind        string     `json:"kind"`
	Target      TargetName `json:"target"`
	Generation  uint64     `json:"generation"`
	AccessEpoch uint64     `json:"access_epoch"`
	// PolicyRevision identifies the policy that asked for it.
	PolicyRevision string       `json:"policy_revision"`
	Digest         ActionDigest `json:"digest"`
	// Why says what in the policy asks for the approval.
	Why  string   `json:"why"`
	Argv []string `json:"argv"`
	// EnvSet and EnvUnset are the call's own; the target's are in its registration.
	EnvSet   map[string]string `json:"env_set,omitempty"`
	EnvUnset []string          `json:"env_unset,omitempty"`
	// Cwd is empty for the target's.
	Cwd string `json:"cwd,omitempty"`
	// User is who it would run as; empty for the executor's own.
	User string `json:"user,omitempty"`
	// StdinBytes is how much standard input it would be given.
	StdinBytes int `json:"stdin_bytes,omitempty"`
	// ExpiresAt is when the approval ends unused, by the authority's clock.
	ExpiresAt time.Time `json:"expires_at"`
}

// ApprovalGranted is somebody's yes; the action is started if nothing has moved.
type ApprovalGranted struct {
	Approval ApprovalID    `json:"approval"`
	Exec     ExecID        `json:"exec"`
	By       PrincipalName `json:"by"`
	// PlatformUser is for whom a gateway answered.
	PlatformUser PlatformUser `json:"platform_user,omitempty"`
}

// ApprovalDenied is somebody's no; the exec is refused.
type ApprovalDenied struct {
	Approval     ApprovalID    `json:"approval"`
	Exec         ExecID        `json:"exec"`
	By           PrincipalName `json:"by"`
	PlatformUser PlatformUser  `json:"platform_user,omitempty"` // for whom a gateway answered
	Reason       string        `json:"reason,omitempty"`
}

// ApprovalExpired says that an approval was not used in time; the exec is refused.
type ApprovalExpired struct {
	Approval ApprovalID `json:"approval"`
	Exec     ExecID     `json:"exec"`
}

// ApprovalConsumed uses a granted approval, once, after all that it is bound to was
// looked at again; the executor is told to start.
type ApprovalConsumed struct {
	Approval ApprovalID `json:"approval"`
	Exec     ExecID     `json:"exec"`
	// Digest is that of the action as it is about to be started.
	Digest ActionDigest `json:"digest"`
}

// ApprovalInvalidated ends an approval whose action has changed or is not wanted any
// more; the exec is refused.
type ApprovalInvalidated struct {
	Approval ApprovalID `json:"approval"`
	Exec     ExecID     `json:"exec"`
	Code     Code       `json:"code"`
	Reason   string     `json:"reason"`
}

// GrantApproval approves one action. Sent by operators, and by a gateway of the session
// for a platform user whom the session's policy lists. Answer: [ApprovalView].
type GrantApproval struct {
	Approval ApprovalID `json:"approval"`
	// PlatformUser is for whom a gateway answers; operators answer for themselves.
	PlatformUser PlatformUser `json:"platform_user,omitempty"`
}

// DenyApproval refuses one action. Sent like [GrantApproval]. Answer: [ApprovalView].
type DenyApproval struct {
	Approval     ApprovalID   `json:"approval"`
	PlatformUser PlatformUser `json:"platform_user,omitempty"` // for whom a gateway answers
	Reason       string       `json:"reason,omitempty"`
}

// ApprovalShow asks for one approval. Answer: [ApprovalView].
type ApprovalShow struct {
	Approval ApprovalID `json:"approval"`
}

// ApprovalList asks for the open approvals of a session, or of all. Answer: [Approvals].
type ApprovalList struct {
	// To is an id or a name of a session; absent for all of the profile.
	To string `json:"to,omitempty"`
	// Ended: true lists those that have ended, too, as far as they are remembered.
	Ended bool `json:"ended,omitempty"`
}

// Approvals is a list of approvals.
type Approvals struct {
	Approvals []ApprovalView `json:"approvals"` // oldest first; at most 1,000, the newest
}

// ApprovalView is what is known of an approval.
type ApprovalView struct {
	ApprovalRequested
	Session     SessionID     `json:"session"`
	Epoch       Epoch         `json:"epoch"`
	State       ApprovalState `json:"state"`
	RequestedAt time.Time     `json:"requested_at"` // by the authority's clock
	// By is who answered; absent when nobody did.
	By           PrincipalName `json:"by,omitempty"`
	PlatformUser PlatformUser  `json:"platform_user,omitempty"` // for whom a gateway answered
	AnsweredAt   time.Time     `json:"answered_at,omitzero"`    // when it was granted, denied or ended otherwise
	// Reason says why it ended, unless it was used.
	Reason string `json:"reason,omitempty"`
}
