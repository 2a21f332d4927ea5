package approvals

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"keryx/events"
)

// Need says whether an argument list needs an approval under a target's policy, and why:
// the first rule that matches decides, else the default. No policy is on_request. asked
// is true when the requester wants an approval; a policy that never asks refuses that
// with code unsupported, since it would be dropped silently else.
func Need(p *events.ApprovalPolicy, argv []string, asked bool) (why string, need bool, err error) {
	decision, by := decide(p, argv)
	switch {
	case decision == events.ApprovalAlways:
		return by, true, nil
	case !asked:
		return "", false, nil
	case decision == events.ApprovalNever:
		return "", false, events.Errorf(events.CodeUnsupported, "an approval was asked for, and %s never asks for one", by)
	}
	return "its requester asks for it", true, nil
}

// decide returns the decision and what made it, in words.
func decide(p *events.ApprovalPolicy, argv []string) (events.ApprovalDecision, string) {
	if p == nil {
		return events.ApprovalOnRequest, "the target"
	}
	for i, r := range p.Rules {
		if len(r.ArgvPrefix) > 0 && len(argv) >= len(r.ArgvPrefix) && slices.Equal(argv[:len(r.ArgvPrefix)], r.ArgvPrefix) {
			return r.Decision, fmt.Sprintf("rule %d of the target (%s ...)", i+1, strings.Join(r.ArgvPrefix, " "))
		}
	}
	if p.Default == "" {
		return events.ApprovalOnRequest, "the target"
	}
	return p.Default, "the target's default"
}

// Revision identifies a policy: the same for the same rules in the same order. It is
// "none" without a policy.
func Revision(p *events.ApprovalPolicy) string {
	if p == nil {
		return "none"
	}
	w := newWriter("keryx.policy.v1")
	w.text(string(p.Default))
	w.number(len(p.Rules))
	for _, r := range p.Rules {
		w.list(r.ArgvPrefix)
		w.text(string(r.Decision))
	}
	sum := sha256.Sum256(w.bytes)
	return hex.EncodeToString(sum[:8])
}
