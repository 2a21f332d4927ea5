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

func tellSteered(d events.TurnSteered) (string, tone) {
	return count(len(d.Items), "message") + " taken into the running turn", plain
}
