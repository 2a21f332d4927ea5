package approvals

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"

	"keryx/events"
)

// Target is what an approval is bound to of the place where the action would run.
type Target struct {
	Kind        string
	Name        events.TargetName
	Generation  uint64
	AccessEpoch uint64
	// User is who commands run as; empty for the executor's own.
	User string
	// Policy is the target's; nil for none.
	Policy *events.ApprovalPolicy
}

// TargetOf returns what is bound of a target: its declaration, and the generation and
// access epoch that it is at.
func TargetOf(spec events.TargetSpec, generation, accessEpoch uint64) Target {
	return Target{
		Kind: spec.Kind, Name: spec.Name, Generation: generation, AccessEpoch: accessEpoch,
		User: spec.User, Policy: spec.Approval,
	}
}

// Action is all that an approval is for.
type Action struct {
	Session events.SessionID
	Epoch   events.Epoch
	Target  Target
	Spec    events.ExecSpec
}

// Digest returns the SHA-256 over a canonical, versioned form of a, in which every part
// is preceded by its length: no two different actions have the same form. That an
// environment is a map, and how often it was copied, does not matter.
func (a Action) Digest() events.ActionDigest {
	w := newWriter("keryx.action.v1")
	w.text(string(a.Session))
	w.number(int(a.Epoch))
	w.target(a.Target)
	w.spec(a.Spec)
	sum := sha256.Sum256(w.bytes)
	return events.ActionDigest(hex.EncodeToString(sum[:]))
}

// writer builds a canonical form.
type writer struct{ bytes []byte }

func newWriter(version string) *writer {
	w := &writer{}
	w.text(version)
	return w
}

func (w *writer) number(n int) { w.bytes = binary.BigEndian.AppendUint64(w.bytes, uint64(n)) }

func (w *writer) raw(b []byte) {
	w.number(len(b))
	w.bytes = append(w.bytes, b...)
}

func (w *writer) text(s string) { w.raw([]byte(s)) }

func (w *writer) list(l []string) {
	w.number(len(l))
	for _, s := range l {
		w.text(s)
	}
}

func (w *writer) bool(b bool) {
	if b {
		w.number(1)
		return
	}
	w.number(0)
}

func (w *writer) target(t Target) {
	w.text(t.Kind)
	w.text(string(t.Name))
	w.number(int(t.Generation))
	w.number(int(t.AccessEpoch))
	w.text(t.User)
	w.text(Revision(t.Policy))
}

// spec writes every field; a test fails when one is added and not written.
func (w *writer) spec(s events.ExecSpec) {
	w.list(s.Argv)
	w.number(len(s.EnvSet))
	for _, name := range slices.Sorted(maps.Keys(s.EnvSet)) {
		w.text(name)
		w.text(s.EnvSet[name])
	}
	w.list(s.EnvUnset)
	w.text(s.Cwd)
	w.bool(s.Stdin != nil) // absent is /dev/null, empty is an empty pipe
	w.raw(s.Stdin)
	w.number(int(s.TimeoutMS))
	w.bool(s.GraceMS != nil)
	if s.GraceMS != nil {
		w.number(int(*s.GraceMS))
	}
	w.text(string(s.Outlives))
	w.text(string(s.EnvMode))
	w.bool(s.Login)
	w.bool(s.Background)
	w.bool(s.PTY != nil)
	if s.PTY != nil {
		w.number(s.PTY.Rows)
		w.number(s.PTY.Cols)
	}
}
