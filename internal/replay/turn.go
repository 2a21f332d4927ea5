package replay

import (
	"fmt"
	"strings"

	"keryx/events"
)

func tellTurnStarted(s *story, r events.Record, d events.TurnStarted) (string, tone) {
	s.begin(d.Turn, r.Time)
	text := fmt.Sprintf("%s takes %s", d.Host, count(len(d.Items), "message"))
	if d.TaskID != "" {
		text += ", task " + quoted(string(d.TaskID))
	}
	return text, plain
}

func tellTurnEnded(s *story, r events.Record, d events.TurnEnded) (string, tone) {
	text := string(d.Outcome) + s.end(d.Turn, r.Time)
	if d.Pending > 0 {
		text += fmt.Sprintf(", %d waiting", d.Pending)
	}
	return text + result(d.Error, d.Reply), outcomeTone(d.Outcome)
}

func tellReportedLate(d events.TurnReportedLate) (string, tone) {
	return "after it was given up as lost: " + string(d.Outcome) + result(d.Error, d.Reply), warn
}

// result is what came of a turn: why it went wrong, and the reply.
func result(fault, reply string) string {
	text := ""
	if fault != "" {
		text += ": " + fault
	}
	if reply = strings.TrimRight(reply, "\n"); reply != "" {
		text += ": " + quoted(reply)
	}
	return text
}

func tellQueued(d events.ContinuationQueued) (string, tone) {
	text := quoted(d.Item.Body.Text)
	if d.Item.Kind != events.ItemUser {
		text = string(d.Item.Kind) + " " + text
	}
	if len(d.Item.Body.Data) > 0 {
		text += fmt.Sprintf(" with %d bytes of data", len(d.Item.Body.Data))
	}
	return text, plain
}

func tellOffered(d events.ContinuationOffered) (string, tone) {
	return fmt.Sprintf("%s to %s, %s to answer", count(len(d.Items), "message"), d.Host, milliseconds(d.DeadlineMS)), dim
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
