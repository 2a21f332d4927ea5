package events

// AuditRefused records an attempt to act beyond one's rights (scope _profile).
type AuditRefused struct {
	// Principal is who tried.
	Principal PrincipalName `json:"principal"`
	// Command is the type of what was asked for.
	Command Type   `json:"command"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Target is what the caller aimed at: a session, a name or a reply subject.
	Target string `json:"target,omitempty"`
	// ActingFor is the token that the principal acted for.
	ActingFor TokenName `json:"acting_for,omitempty"`
}

// StoreRegressed records that the store was served although it had lost messages,
// by the operator's decision (scope _profile of every profile in the store).
type StoreRegressed struct {
	// HighWater is the last sequence the store once had.
	HighWater Sequence `json:"high_water"`
	// Last is the last sequence it has now.
	Last Sequence `json:"last"`
	// Generation is that of the store from now on, the first part of every new fence.
	Generation uint64 `json:"generation"`
	// Lost is how many messages below Last are known to be gone.
	Lost uint64 `json:"lost_messages,omitempty"`
	// Damaged are the places in the store's files that were taken out, at most 20.
	Damaged []string `json:"damaged,omitempty"`
}
