package replay

import (
	"fmt"
	"strings"
	"time"

	"keryx/events"
)

func tellTargetRegistered(d events.TargetRegistered) (string, tone) {
	text := fmt.Sprintf("%s (%s) at %s, generation %d", d.Spec.Name, d.Spec.Kind, d.Executor, d.Generation)
	if d.Spec.Cwd != "" {
		text += ", in directory " + d.Spec.Cwd
	}
	return tellCondition(text, d.TargetCondition)
}

func tellCondition(text string, c events.TargetCondition) (string, tone) {
	how := plain
	if len(c.LimitsUnenforced) > 0 {
		text, how = text+", limits unenforced: "+strings.Join(c.LimitsUnenforced, ", "), warn
	}
	if c.ConfigFault != nil {
		text, how = text+", declared anew but not in force: "+c.ConfigFault.Message, warn
	}
	if c.Fault != nil {
		text, how = fmt.Sprintf("%s, cannot be used: %s: %s", text, c.Fault.Code, c.Fault.Message), bad
	}
	return text, how
}

func tellTargetReported(d events.TargetReported) (string, tone) {
	text := fmt.Sprintf("%s at %s, generation %d", d.Name, d.Executor, d.Generation)
	if d.Fault == nil {
		text += ", ready"
	}
	return tellCondition(text, d.TargetCondition)
}

func tellTargetAttached(d events.TargetAttached) (string, tone) {
	return fmt.Sprintf("%s at %s is session %s's alone, epoch %s", d.Name, d.Executor, d.Session, d.Epoch), plain
}

func tellTargetDetached(d events.TargetDetached) (string, tone) {
	return fmt.Sprintf("%s at %s is free, session %s has it no longer: %s", d.Name, d.Executor, d.Session, d.Reason), plain
}

func tellTargetWithdrawn(d events.TargetWithdrawn) (string, tone) {
	return fmt.Sprintf("%s at %s, generation %d: %s", d.Name, d.Executor, d.Generation, d.Reason), plain
}

func tellTokenAdded(d events.TokenAdded) (string, tone) {
	text := fmt.Sprintf("token %s, role %s", d.Name, d.Role)
	if !d.ExpiresAt.IsZero() {
		text += ", until " + d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return text, plain
}

func tellTokenRevoked(d events.TokenRevoked) (string, tone) {
	text := fmt.Sprintf("token %s", d.Name)
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text, plain
}

func tellLeaseRevoked(d events.LeaseRevocation) (string, tone) {
	return fmt.Sprintf("%s from %s, fence %s: %s", d.Key, d.Holder, d.Fence, quoted(d.Reason)), bad
}

func tellLeaseTakenOver(d events.LeaseTakeover) (string, tone) {
	return fmt.Sprintf("%s by %s, fence %s, from %s, which did not renew it", d.Key, d.Holder, d.Fence, d.Former), plain
}

func tellControlChanged(d events.TargetControlChanged) (string, tone) {
	text := fmt.Sprintf("%s: access epoch %d", d.Name, d.AccessEpoch)
	switch {
	case d.To != "" && d.From != "" && d.From != d.To:
		return text + fmt.Sprintf(", %s has control now, taken over from %s", d.To, d.From), plain
	case d.To != "":
		return text + fmt.Sprintf(", %s has control now", d.To), plain
	}
	return text + fmt.Sprintf(", %s has given control back", d.From), plain
}

func tellRefused(d events.AuditRefused) (string, tone) {
	text := fmt.Sprintf("%s tried %s", d.Principal, d.Command.Short())
	if d.ActingFor != "" {
		text = fmt.Sprintf("%s for token %s tried %s", d.Principal, d.ActingFor, d.Command.Short())
	}
	if d.Target != "" {
		text += " on " + quoted(d.Target)
	}
	return fmt.Sprintf("%s: %s: %s", text, d.Code, d.Message), bad
}

func tellRegressed(d events.StoreRegressed) (string, tone) {
	text := fmt.Sprintf("served although the store ends at %s and once reached %s, generation %d", d.Last, d.HighWater, d.Generation)
	if d.Lost > 0 {
		text += ", " + fmt.Sprintf("%d missing", d.Lost)
	}
	if len(d.Damaged) > 0 {
		text += ", damaged: " + strings.Join(d.Damaged, "; ")
	}
	return text, bad
}

func tellImported(d events.SessionImported) (string, tone) {
	return fmt.Sprintf("session %s of profile %s, %s up to ordinal %s, redaction %s",
		d.Session, d.FromProfile, count(d.Events, "event"), d.LastOrdinal, d.Redaction), plain
}
