package replay

import (
	"fmt"
	"time"

	"keryx/events"
)

func tellQueued(d events.ContinuationQueued) (string, tone) {
	text := quoted(d.Item.Body.Text)
	if d.Item.Kind != events.ItemUser {
		text = string(d.Item.Kind) + " " + text
	}
	if len(d.Item.Body.Data) > 0 {
		text += fmt.Sprintf(" with %d bytes of data", len(d.Item.Body.Data))
	}
	if d.Item.Mode != "" && d.Item.Mode != events.ModeEnqueue {
		text += " (" + string(d.Item.Mode) + ")"
	}
	if !d.Item.NotBefore.IsZero() {
		text += ", due " + d.Item.NotBefore.UTC().Format(time.RFC3339)
	}
	return text, plain
}

func tellOffered(d events.ContinuationOffered) (string, tone) {
	what := count(len(d.Items), "message")
	if d.Turn != "" {
		what += " for the running turn"
	}
	return fmt.Sprintf("%s to %s, %s to answer", what, d.Host, milliseconds(d.DeadlineMS)), dim
}

func tellRequeued(d events.ContinuationRequeued) (string, tone) {
	text := fmt.Sprintf("%s back to the head of the queue: %s", count(len(d.Items), "message"), d.Reason)
	if d.DelayMS > 0 {
		text += ", offered again after " + milliseconds(d.DelayMS)
	}
	return text, warn
}

func tellUnresolved(d events.ContinuationUnresolved) (string, tone) {
	return fmt.Sprintf("nobody knows whether %s ran: %s", count(len(d.Items), "message"), d.Reason), bad
}

func tellInvalidated(d events.ContinuationInvalidated) (string, tone) {
	return fmt.Sprintf("%s not delivered: %s", count(len(d.Items), "message"), d.Reason), warn
}

func tellEdited(d events.ContinuationEdited) (string, tone) {
	return "a message now says " + quoted(d.Body.Text), plain
}

func tellDowngraded(d events.ContinuationDowngraded) (string, tone) {
	return fmt.Sprintf("%s became %s: %s", d.From, d.To, d.Reason), warn
}

func tellHeld(d events.ContinuationHeld) (string, tone) {
	return fmt.Sprintf("%s held back: %s", count(len(d.Items), "message"), d.Reason), warn
}

func tellReleased(d events.ContinuationReleased) (string, tone) {
	return fmt.Sprintf("%s may be delivered now: %s", count(len(d.Items), "message"), d.Reason), plain
}

func tellExpired(d events.ContinuationExpired) (string, tone) {
	return count(len(d.Items), "message") + " not delivered in time", warn
}

func tellCancelled(d events.ContinuationCancelled) (string, tone) {
	return count(len(d.Items), "message") + " taken back" + why(d.Reason), warn
}

func tellDiscarded(d events.ContinuationDiscarded) (string, tone) {
	return count(len(d.Items), "message") + " given up, and nobody knows whether it ran" + why(d.Reason), warn
}

func why(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
