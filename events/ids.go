package events

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
)

// The identifiers of the bus have different lifetimes and are never
// interchangeable: each is a type of its own.
type (
	// Profile is a scope of trust: a slug matching [a-z0-9][a-z0-9-]{0,62}.
	Profile string
	// PrincipalName names an authenticated process within a profile: [a-z0-9-]{1,63}.
	PrincipalName string
	// Instance is the nonce of one start of a principal's process, a ULID.
	Instance string
	// SessionID is the durable lane of one conversation, a ULID minted by the bus.
	SessionID string
	// Scope is the subject of a log: a session id, or "_profile" and its kin.
	Scope string
	// TurnID names one run of the agent; a ULID minted by the host.
	TurnID string
	// OfferID names one offer of queued items to a host; a ULID minted by the bus.
	OfferID string
	// ReceiptID names one submitted item; a ULID minted by the bus.
	ReceiptID string
	// ExecID names one process tree; a ULID minted by the bus.
	ExecID string
	// ApprovalID names one person's word on one action; a ULID minted by the bus.
	ApprovalID string
	// ImportID names one import of a record; a ULID minted by the bus.
	ImportID string
	// CommandID is the CloudEvents id of a command; a ULID minted by its sender.
	CommandID string
	// EventID is the CloudEvents id of an event; a ULID minted by the authority.
	EventID string
	// TargetName names a place to run within a profile: a slug like [Profile].
	TargetName string

	// GatewaySessionKey is the stable external id of a conversation, e.g. "slack:C1:17.1".
	GatewaySessionKey string
	// StoredSessionID is the id of the durable conversation; compression changes it.
	StoredSessionID string
	// RuntimeSessionID is a live registry id; new at each resume.
	RuntimeSessionID string
	// AgentSessionID is what the agent calls its conversation now (session_id).
	AgentSessionID string
	// PlatformUser is a person as a gateway's platform knows them, e.g. "slack:U1".
	PlatformUser string
	// TaskID is the task of a turn.
	TaskID string

	// Epoch counts the incarnations of a session: 1, 2, 3 ... Zero means none.
	Epoch int
	// Sequence is a position in a stream. Zero means none.
	Sequence uint64
	// Ordinal is the dense position in one scope's log, from 1. Zero means none.
	Ordinal uint64
)

// ScopeProfile is the scope of facts about the profile itself: principals,
// targets, packages and audit.
const ScopeProfile Scope = "_profile"

// Scope returns the log scope of a session.
func (s SessionID) Scope() Scope { return Scope(s) }

// importPrefix begins the scope of an imported session.
const importPrefix = "import-"

// ImportScope returns the scope under which the imported record of a session is read. It
// differs from the session's own, which may be there as well.
func ImportScope(s SessionID) Scope { return Scope(importPrefix + s) }

// Session returns the session of a scope. Other scopes return themselves, which is no
// session's id.
func (s Scope) Session() SessionID { return SessionID(strings.TrimPrefix(string(s), importPrefix)) }

// Imported reports whether s is the scope of an imported session.
func (s Scope) Imported() bool { return strings.HasPrefix(string(s), importPrefix) }

// NewID returns a fresh ULID. It is safe for concurrent use.
func NewID() string { return ulid.Make().String() }

// ErrBadID is wrapped by every error about a malformed identifier.
var ErrBadID = errors.New("malformed identifier")

var (
	slugPattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	principalPattern = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
)

// Validate returns an error wrapping [ErrBadID] unless p is a slug.
func (p Profile) Validate() error { return match("profile", string(p), slugPattern) }

// Validate returns an error wrapping [ErrBadID] unless n is a principal's name.
func (n PrincipalName) Validate() error { return match("principal", string(n), principalPattern) }

// Validate returns an error wrapping [ErrBadID] unless t is a slug.
func (t TargetName) Validate() error { return match("target", string(t), slugPattern) }

func match(what, value string, p *regexp.Regexp) error {
	if !p.MatchString(value) {
		return fmt.Errorf("%s %q does not match %s: %w", what, value, p, ErrBadID)
	}
	return nil
}

// IsULID reports whether s is a ULID in its canonical upper-case form.
func IsULID(s string) bool {
	id, err := ulid.ParseStrict(s)
	return err == nil && id.String() == s
}

// String returns the decimal form, as carried in CloudEvents attributes.
func (s Sequence) String() string { return strconv.FormatUint(uint64(s), 10) }

// String returns the decimal form, as carried in CloudEvents attributes.
func (o Ordinal) String() string { return strconv.FormatUint(uint64(o), 10) }

// String returns the decimal form, as carried in CloudEvents attributes.
func (e Epoch) String() string { return strconv.Itoa(int(e)) }

// Fence orders the holders of a lease or session. It is a stream sequence
// together with the generation of the store, because a damaged store may give
// numbers out again. The zero value is no fence and is older than any other.
type Fence struct {
	Generation uint64
	Sequence   Sequence
}

// IsZero reports whether f is no fence.
func (f Fence) IsZero() bool { return f == Fence{} }

// Less reports whether f is older than g.
func (f Fence) Less(g Fence) bool {
	if f.Generation != g.Generation {
		return f.Generation < g.Generation
	}
	return f.Sequence < g.Sequence
}

// String returns "<generation>.<sequence>", or "" for no fence.
func (f Fence) String() string {
	if f.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%d", f.Generation, f.Sequence)
}

// ParseFence reads the form written by [Fence.String]. Its error wraps [ErrBadID].
func ParseFence(s string) (Fence, error) {
	if s == "" {
		return Fence{}, nil
	}
	gen, seq, ok := strings.Cut(s, ".")
	g, gerr := strconv.ParseUint(gen, 10, 64)
	n, nerr := strconv.ParseUint(seq, 10, 64)
	if !ok || gerr != nil || nerr != nil {
		return Fence{}, fmt.Errorf("fence %q is not <generation>.<sequence>: %w", s, ErrBadID)
	}
	return Fence{Generation: g, Sequence: Sequence(n)}, nil
}

// MarshalText implements encoding.TextMarshaler.
func (f Fence) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Fence) UnmarshalText(b []byte) error {
	parsed, err := ParseFence(string(b))
	if err != nil {
		return err
	}
	*f = parsed
	return nil
}
