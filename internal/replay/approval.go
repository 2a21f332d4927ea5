package replay

import (
	"fmt"
	"strings"
	"time"

	"keryx/events"
)

func tellPolicyChanged(d events.SessionPolicyChanged) (string, tone) {
	peers := "no messages of peers"
	if d.Policy.Peers {
		peers = "messages of peers"
	}
	text := "policy: " + peers
	if len(d.Policy.Approvers) > 0 {
		text += ", approved by " + joined(d.Policy.Approvers)
	}
	if d.Policy.ToolDefault != "" {
		text += ", tools without an answer: " + string(d.Policy.ToolDefault)
	}
	if len(d.Policy.Hosts) > 0 {
		text += ", for " + joined(d.Policy.Hosts)
	}
	return text, plain
}

func tellApprovalRequested(d events.ApprovalRequested) (string, tone) {
	text := fmt.Sprintf("%s wants to run in %s: %s", d.Requester, d.Target, commandLine(d.Argv))
	if d.Cwd != "" {
		text += " in directory " + d.Cwd
	}
	return fmt.Sprintf("%s (%s, until %s)", text, d.Why, d.ExpiresAt.UTC().Format(time.TimeOnly)), warn
}

// byWhom names who answered an approval.
func byWhom(by events.PrincipalName, user events.PlatformUser) string {
	if user == "" {
		return "by " + string(by)
	}
	return fmt.Sprintf("by %s through %s", user, by)
}

func tellApprovalGranted(d events.ApprovalGranted) (string, tone) {
	return byWhom(d.By, d.PlatformUser), good
}

func tellApprovalDenied(d events.ApprovalDenied) (string, tone) {
	text := byWhom(d.By, d.PlatformUser)
	if d.Reason != "" {
		text += ": " + quoted(d.Reason)
	}
	return text, bad
}

func tellApprovalExpired(events.ApprovalExpired) (string, tone) {
	return "nobody approved it in time", warn
}

func tellApprovalConsumed(events.ApprovalConsumed) (string, tone) {
	return "used: nothing had changed", dim
}

func tellApprovalInvalidated(d events.ApprovalInvalidated) (string, tone) {
	return fmt.Sprintf("of no use any more: %s: %s", d.Code, d.Reason), warn
}

func tellPolicyAsked(d events.PolicyAsked) (string, tone) {
	judges := make([]string, 0, len(d.Judges))
	for _, j := range d.Judges {
		judges = append(judges, string(j.Principal))
	}
	if len(judges) == 0 {
		return fmt.Sprintf("may %s run %s? nobody is registered to be asked", d.Host, quoted(d.Tool)), plain
	}
	return fmt.Sprintf("may %s run %s? asking %s", d.Host, quoted(d.Tool), strings.Join(judges, ", ")), plain
}

func tellPolicyVoted(d events.PolicyVoted) (string, tone) {
	text := fmt.Sprintf("%s says %s", d.By, d.Verdict)
	if d.Reason != "" {
		text += ": " + quoted(d.Reason)
	}
	return text, dim
}

func tellPolicyAnswered(d events.PolicyAnswered) (string, tone) {
	t := good
	if d.Verdict == events.VerdictDeny {
		t = bad
	}
	return fmt.Sprintf("%s: %s", d.Verdict, d.Reason), t
}
