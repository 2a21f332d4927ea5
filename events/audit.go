package events

// AuditRefused records an attempt to act beyond one's rights (scope _profile).
type AuditRefused struct {
	Principal PrincipalName `json:"principal"`
	// Command is the type of what was asked for.
	Command Type   `json:"command"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Target is what the caller aimed at: a session, a name or a reply subject.
	Target string `json:"target,omitempty"`
}

// StoreRegressed records that the store was served although it had lost messages,
// by the operator's decision (scope _profile of every profile in the store).
type StoreRegressed struct {
	HighWater  Sequence `json:"high_water"`
	Last       Sequence `json:"last"`
	Generation uint64   `json:"generation"`
}
