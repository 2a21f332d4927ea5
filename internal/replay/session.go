package replay

import (
	"fmt"
	"strings"

	"keryx/events"
)

// names lists the ids that are known, by kind.
func names(n events.Names) string {
	var out []string
	for _, r := range n.Records() {
		out = append(out, strings.TrimSuffix(string(r.Kind), "_session_id")+" "+quoted(r.Value))
	}
	if n.TaskID != "" {
		out = append(out, "task "+quoted(string(n.TaskID)))
	}
	for _, p := range []struct{ what, value string }{{"home", n.Home}, {"source", n.Source}, {"surface", n.Surface}} {
		if p.value != "" {
			out = append(out, p.what+" "+p.value)
		}
	}
	if len(out) == 0 {
		return "without names"
	}
	return strings.ReplaceAll(strings.Join(out, ", "), string(events.KindGatewayKey), "key")
}

func tellRegistered(d events.SessionRegistered) (string, tone) {
	text := names(d.Names)
	if d.Reopened {
		text = "reopened, " + text
		if d.ForSubmit {
			text = "reopened for a message"
		}
	}
	if len(d.Policy.Hosts) > 0 {
		text += ", for " + joined(d.Policy.Hosts)
	}
	if d.Policy.Lifetime == events.LifetimeBus {
		text += ", lives as long as the bus"
	}
	return text, plain
}

func joined[S ~string](list []S) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}

func tellAliased(d events.SessionAliased) (string, tone) { return "also " + names(d.Names), plain }

func tellStarted(d events.SessionStarted) (string, tone) {
	return "first turn of the epoch, by " + string(d.Host), plain
}

func tellAttached(d events.SessionAttached) (string, tone) {
	text := fmt.Sprintf("%s drives the session, lease %s", d.Host, milliseconds(d.LeaseTTLMS))
	if len(d.Capabilities) > 0 {
		text += ", can " + joined(d.Capabilities)
	}
	return text, plain
}

func tellDetached(d events.SessionDetached) (string, tone) {
	t := plain
	if d.Reason == events.DetachHostLost {
		t = bad
	}
	return fmt.Sprintf("%s: %s", d.Host, strings.ReplaceAll(string(d.Reason), "_", " ")), t
}

func tellIdle(d events.SessionIdle) (string, tone) {
	text := fmt.Sprintf("after a turn that %s, %d waiting", ended(d.Reason), d.Pending)
	if d.BackgroundRunning > 0 {
		text += fmt.Sprintf(", %d running in the background", d.BackgroundRunning)
	}
	return text, dim
}

// ended is an outcome as the predicate of "a turn that".
func ended(o events.Outcome) string {
	switch o {
	case events.OutcomeCompleted, events.OutcomeFailed:
		return string(o)
	}
	return "was " + string(o)
}

func tellReanchored(d events.SessionReanchored) (string, tone) {
	text := "stored id " + quoted(string(d.To))
	if d.From != "" {
		text += " after " + quoted(string(d.From))
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text, plain
}

func tellReset(_ *story, r events.Record, d events.SessionReset) (string, tone) {
	text := fmt.Sprintf("epoch %s opens: %s", r.Epoch, d.Reason)
	if n := len(d.Carry.Items); n > 0 {
		text += ", " + count(n, "message") + " carried over"
	}
	if n := len(d.Dropped); n > 0 {
		text += ", " + count(n, "message") + " dropped"
	}
	return text, plain
}

func tellForgotten(d events.SessionForgotten) (string, tone) {
	return "session " + string(d.Session) + " is removed: " + d.Reason, warn
}

func tellFinalized(d events.SessionFinalized) (string, tone) {
	text := "the epoch ends: " + d.Reason
	if n := len(d.Invalidated); n > 0 {
		text += ", " + count(n, "message") + " not delivered"
	}
	return text, warn
}
