package events

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// Streams and buckets of the bus.
const (
	StreamLog    = "KX_LOG"    // kx.log and kx.id: the truth
	StreamOut    = "KX_OUT"    // kx.out: output chunks
	StreamDead   = "KX_DEAD"   // kx.dead: refused input with its reason
	StreamImport = "KX_IMPORT" // kx.import: imported records
	StreamSnap   = "KX_SNAP"   // kx.snap: folded state
	BucketLeases = "kx_leases" // leases, republished to kx.lease
)

// Patterns of the streams, for their configuration.
const (
	PatternLog    = "kx.log.>"
	PatternID     = "kx.id.>"
	PatternLive   = "kx.live.>"
	PatternOut    = "kx.out.*.*.*.*"
	PatternDead   = "kx.dead.*.*"
	PatternImport = "kx.import.*.*"
	PatternSnap   = "kx.snap.*.*"
	PatternIndex  = "kx.snap._index.*"
	PatternLease  = "kx.lease.>"
	PatternCmd    = "kx.cmd.>"
)

// ErrBadSubject is wrapped by errors about a subject that is not of the expected form.
var ErrBadSubject = errors.New("malformed subject")

// token returns s if it can stand as one token of a subject.
func token(s string) (string, error) {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return r == '.' || r == '*' || r == '>' || r <= ' ' || r == 0x7f
	}) {
		return "", fmt.Errorf("token %q: %w", s, ErrBadSubject)
	}
	return s, nil
}

// join builds a subject from literal tokens. It panics on a token that would widen
// the subject: callers pass only validated identifiers.
func join(tokens ...string) string {
	for _, t := range tokens {
		if _, err := token(t); err != nil {
			panic(err)
		}
	}
	return strings.Join(tokens, ".")
}

// split returns the tokens of a literal subject of the bus that has n of them.
func split(subject string, n int) (tokens []string, ok bool) {
	tokens = strings.Split(subject, ".")
	if len(tokens) != n || tokens[0] != "kx" {
		return nil, false
	}
	for _, t := range tokens {
		if _, err := token(t); err != nil {
			return nil, false
		}
	}
	return tokens, true
}

// LogSubject returns kx.log.<profile>.<scope>.
func LogSubject(p Profile, s Scope) string { return join("kx", "log", string(p), string(s)) }

// LiveSubject returns kx.live.<profile>.<scope>, where the log is republished.
func LiveSubject(p Profile, s Scope) string { return join("kx", "live", string(p), string(s)) }

// LiveAll returns the pattern of everything live in a profile.
func LiveAll(p Profile) string { return join("kx", "live", string(p)) + ".>" }

// IDSubject returns kx.id.<profile>.<kind>.<hash> of a name.
func IDSubject(p Profile, n Name) string {
	return join("kx", "id", string(p), string(n.Kind), NameHash(n.Value))
}

// NameHash returns the token under which a name is kept: the first 26 characters
// of the lower-case base32 SHA-256 of its bytes as given (130 bits).
func NameHash(value string) string {
	sum := sha256.Sum256([]byte(value))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:26]
}

// CmdSubject returns kx.cmd.<profile>.<principal>.<noun>.<verb> for a command type.
func CmdSubject(p Profile, n PrincipalName, t Type) (string, error) {
	noun, verb, err := t.command()
	if err != nil {
		return "", err
	}
	return join("kx", "cmd", string(p), string(n), noun, verb), nil
}

// ParseCmdSubject returns the proven caller of a command and the noun and verb asked for.
func ParseCmdSubject(subject string) (Profile, PrincipalName, string, string, error) {
	t, ok := split(subject, 6)
	if !ok || t[1] != "cmd" {
		return "", "", "", "", fmt.Errorf("command subject %q: %w", subject, ErrBadSubject)
	}
	return Profile(t[2]), PrincipalName(t[3]), t[4], t[5], nil
}

// HostVerb is what the authority tells a host.
type HostVerb string

// What the authority tells a host.
const (
	HostOffer     HostVerb = "offer"
	HostInterrupt HostVerb = "interrupt"
	HostSteer     HostVerb = "steer"
	HostDetached  HostVerb = "detached"
)

// ExecVerb is what the authority tells an executor.
type ExecVerb string

// What the authority tells an executor.
const (
	ExecStart   ExecVerb = "start"
	ExecStop    ExecVerb = "stop"
	ExecControl ExecVerb = "control"
	ExecRelease ExecVerb = "release"
	// Setups are told to the executor that has the target.
	ExecSetup     ExecVerb = "setup"
	ExecSetupStop ExecVerb = "setupstop"
)

// HostSubject returns kx.host.<profile>.<principal>.<instance>.<verb>.
func HostSubject(p Profile, n PrincipalName, i Instance, v HostVerb) string {
	return join("kx", "host", string(p), string(n), string(i), string(v))
}

// HostAll returns the pattern of everything told to one host instance.
func HostAll(p Profile, n PrincipalName, i Instance) string {
	return join("kx", "host", string(p), string(n), string(i)) + ".>"
}

// ExecSubject returns kx.exec.<profile>.<principal>.<instance>.<verb>.
func ExecSubject(p Profile, n PrincipalName, i Instance, v ExecVerb) string {
	return join("kx", "exec", string(p), string(n), string(i), string(v))
}

// ExecAll returns the pattern of everything told to one executor instance.
func ExecAll(p Profile, n PrincipalName, i Instance) string {
	return join("kx", "exec", string(p), string(n), string(i)) + ".>"
}

// PolicySubject returns kx.policy.<profile>.<principal>.<instance>.ask, where one process
// is asked before a tool runs.
func PolicySubject(p Profile, n PrincipalName, i Instance) string {
	return join("kx", "policy", string(p), string(n), string(i), "ask")
}

// OutSubject returns kx.out.<profile>.<executor>.<session>.<exec>.
func OutSubject(p Profile, executor PrincipalName, s SessionID, e ExecID) string {
	return join("kx", "out", string(p), string(executor), string(s), string(e))
}

// OutOfAny returns the pattern of an exec's output whichever executor wrote it.
func OutOfAny(p Profile, s SessionID, e ExecID) string {
	return join("kx", "out", string(p)) + ".*." + join(string(s), string(e))
}

// PartSubject returns kx.part.<profile>.<principal>.<session>.<turn>.
func PartSubject(p Profile, host PrincipalName, s SessionID, t TurnID) string {
	return join("kx", "part", string(p), string(host), string(s), string(t))
}

// PartAll returns the pattern of every reply piece of one session, from any host.
func PartAll(p Profile, s SessionID) string {
	return join("kx", "part", string(p)) + ".*." + join(string(s)) + ".*"
}

// DeadSubject returns kx.dead.<profile>.<principal>.
func DeadSubject(p Profile, n PrincipalName) string {
	return join("kx", "dead", string(p), string(n))
}

// OutOfEvery returns the pattern of a session's output whichever executor wrote it.
func OutOfEvery(p Profile, s SessionID) string {
	return join("kx", "out", string(p)) + ".*." + join(string(s)) + ".*"
}

// DeadAll returns the pattern of the dead letters of a profile.
func DeadAll(p Profile) string { return join("kx", "dead", string(p)) + ".*" }

// SnapSubject returns kx.snap.<profile>.<scope>.
func SnapSubject(p Profile, s Scope) string { return join("kx", "snap", string(p), string(s)) }

// IndexSubject returns kx.snap._index.<part>: no profile can have that name.
func IndexSubject(part string) string { return join("kx", "snap", "_index", part) }

// InboxPrefix returns _INBOX_<profile>_<principal>, the only place where answers
// to that principal may go. Neither part can hold "_", so no two principals share one.
func InboxPrefix(p Profile, n PrincipalName) string {
	return join("_INBOX_" + string(p) + "_" + string(n))
}

// ImportSubject returns kx.import.<profile>.<session>, where imported records are.
func ImportSubject(p Profile, s SessionID) string {
	return join("kx", "import", string(p), string(s))
}

// LeaseSubject returns the subject under which a lease's changes are republished.
func LeaseSubject(k LeaseKey) string { return "kx.lease." + k.String() }

// LeaseAll returns the pattern of all lease changes of a profile.
func LeaseAll(p Profile) string { return join("kx", "lease", string(p)) + ".>" }

// ParseLogSubject returns the profile and scope of a kx.log or kx.live subject.
func ParseLogSubject(subject string) (Profile, Scope, error) {
	t, ok := split(subject, 4)
	if !ok || (t[1] != "log" && t[1] != "live") {
		return "", "", fmt.Errorf("log subject %q: %w", subject, ErrBadSubject)
	}
	return Profile(t[2]), Scope(t[3]), nil
}

// ParseOutSubject returns the parts of a kx.out subject.
func ParseOutSubject(subject string) (Profile, PrincipalName, SessionID, ExecID, error) {
	t, ok := split(subject, 6)
	if !ok || t[1] != "out" {
		return "", "", "", "", fmt.Errorf("output subject %q: %w", subject, ErrBadSubject)
	}
	return Profile(t[2]), PrincipalName(t[3]), SessionID(t[4]), ExecID(t[5]), nil
}

// ParseTTYSubject returns the parts of a kx.tty subject: the executor, who types, and where.
func ParseTTYSubject(subject string) (Profile, PrincipalName, PrincipalName, SessionID, ExecID, error) {
	t, ok := split(subject, 7)
	if !ok || t[1] != "tty" {
		return "", "", "", "", "", fmt.Errorf("terminal subject %q: %w", subject, ErrBadSubject)
	}
	return Profile(t[2]), PrincipalName(t[3]), PrincipalName(t[4]), SessionID(t[5]), ExecID(t[6]), nil
}
