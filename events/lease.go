package events

import (
	"fmt"
	"strings"
)

// LeaseKind says what a lease is held on; a principal's role decides which kinds
// it may hold.
type LeaseKind string

// The kinds of leases.
const (
	LeaseTarget  LeaseKind = "target"  // held by executors
	LeaseSession LeaseKind = "session" // held by hosts
	LeaseAccount LeaseKind = "account" // held by gateways
	LeasePolicy  LeaseKind = "policy"  // held by who is asked before a tool runs: gateways, operators
	LeaseBus     LeaseKind = "bus"     // held by the active authority
	LeaseHandler LeaseKind = "handler" // held by processes that carry out slash commands
)

// LeaseKey names a lease: <profile>.<kind>.<name>.
type LeaseKey struct {
	Profile Profile
	Kind    LeaseKind
	Name    string
}

// AuthorityLease is the key held by the active authority. Its profile cannot be a
// user's, since a slug does not begin with "_".
var AuthorityLease = LeaseKey{Profile: "_bus", Kind: LeaseBus, Name: "authority"}

// String returns the key as kept in the bucket. It panics on a part that would widen the
// key, as all subjects do; see [LeaseKey.MarshalText] for keys that were not checked.
func (k LeaseKey) String() string { return join(string(k.Profile), string(k.Kind), k.Name) }

// ParseLeaseKey reads the form of [LeaseKey.String]. Its error wraps [ErrBadID].
func ParseLeaseKey(s string) (LeaseKey, error) {
	t := strings.Split(s, ".")
	if len(t) != 3 {
		return LeaseKey{}, fmt.Errorf("lease key %q is not <profile>.<kind>.<name>: %w", s, ErrBadID)
	}
	for _, part := range t {
		if _, err := token(part); err != nil {
			return LeaseKey{}, fmt.Errorf("lease key %q: %w", s, ErrBadID)
		}
	}
	return LeaseKey{Profile: Profile(t[0]), Kind: LeaseKind(t[1]), Name: t[2]}, nil
}

// MarshalText implements encoding.TextMarshaler. Unlike [LeaseKey.String], it returns an
// error wrapping [ErrBadID] for a key that could not be read again.
func (k LeaseKey) MarshalText() ([]byte, error) {
	for _, part := range []string{string(k.Profile), string(k.Kind), k.Name} {
		if _, err := token(part); err != nil {
			return nil, fmt.Errorf("lease key with part %q: %w", part, ErrBadID)
		}
	}
	return []byte(k.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *LeaseKey) UnmarshalText(b []byte) error {
	parsed, err := ParseLeaseKey(string(b))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

// LeaseState is the state written in a lease record.
type LeaseState string

// The states of a lease record.
const (
	LeaseHeld     LeaseState = "held"
	LeaseReleased LeaseState = "released" // given back by its holder
	LeaseExpired  LeaseState = "expired"  // not renewed within its ttl
	LeaseRevoked  LeaseState = "revoked"  // taken away by an operator
)

// LeaseRecord is the value of a lease key. An empty body is never a lease.
type LeaseRecord struct {
	State    LeaseState    `json:"state"`
	Holder   PrincipalName `json:"holder"`
	Instance Instance      `json:"instance"`
	// Fence is that of the acquiring write; empty on that write itself, whose
	// revision is the fence.
	Fence  Fence  `json:"fence,omitzero"`
	TTLMS  int64  `json:"ttl_ms"`
	Reason string `json:"reason,omitempty"` // why it ended
	// GraceMS is how long after the ttl the holder's work may take to end; nobody else
	// gets the lease before.
	GraceMS int64 `json:"grace_ms,omitempty"`
	// Revocation is the command that took the lease away; empty: none did. It stays
	// when the former holder gives the lease back.
	Revocation CommandID `json:"revocation,omitempty"`
}

// LeaseRevocation says that an operator took a lease away (scope _profile). Who, is the
// event's source.
type LeaseRevocation struct {
	Key LeaseKey `json:"key"`
	// Holder, Instance and Fence are those that lost the lease.
	Holder   PrincipalName `json:"holder"`
	Instance Instance      `json:"instance"`
	Fence    Fence         `json:"fence"`
	Reason   string        `json:"reason"`
}

// LeaseTakeover says that a lease whose holder did not renew it in time was granted to
// another (scope _profile).
type LeaseTakeover struct {
	Key LeaseKey `json:"key"`
	// Holder, Instance and Fence are those of the newcomer.
	Holder   PrincipalName `json:"holder"`
	Instance Instance      `json:"instance"`
	Fence    Fence         `json:"fence"`
	// Former is who had it before, under FormerFence.
	Former         PrincipalName `json:"former"`
	FormerInstance Instance      `json:"former_instance"`
	FormerFence    Fence         `json:"former_fence"`
}
