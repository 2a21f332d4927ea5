package events

// AcquireLease asks for a lease. Answer: [LeaseAnswer].
type AcquireLease struct {
	Key      LeaseKey `json:"key"`
	Instance Instance `json:"instance"`
	TTLMS    int64    `json:"ttl_ms,omitempty"`
	// GraceMS is how long after the ttl the holder's work may take to end: nobody else
	// gets the lease before. At most 300,000.
	GraceMS int64 `json:"grace_ms,omitempty"`
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

// RevokeLease takes a lease away from its holder. The same instance does not get it
// again; another gets it as soon as the former holder has given it back, or may not act
// any more. Answer: [RevokedLease].
type RevokeLease struct {
	Key    LeaseKey `json:"key"`
	Reason string   `json:"reason"` // why, for the record and for the holder
}

// RevokedLease answers [RevokeLease]: who has lost the lease.
type RevokedLease struct {
	Key      LeaseKey      `json:"key"`
	Holder   PrincipalName `json:"holder"`
	Instance Instance      `json:"instance"`
	Fence    Fence         `json:"fence"`
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
	// AgeMS is how long ago the bus saw the record change: acquired, renewed or ended.
	AgeMS int64 `json:"age_ms,omitempty"`
}
