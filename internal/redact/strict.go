package redact

import (
	"encoding/json"

	"keryx/events"
)

// Strict takes out of JSON all that is not on a list of names whose values may stay: ids,
// counts, times, and words of closed sets. What is new is not on the list.
type Strict struct{}

// Mode implements the filters' Mode.
func (Strict) Mode() events.Redaction { return events.RedactStrict }

// mayStay are the names of single values that are kept.
var mayStay = nameSet(
	// ids that the bus or its programs minted
	"session", "receipt", "turn", "offer", "exec", "import", "items", "settled", "dropped", "invalidated", "command", "instance",
	"host", "executor", "owner", "sender", "requester", "target", "hosts", "wanted_hosts", "fence", "lease_fence",
	// places, counts and times
	"epoch", "ordinal", "sequence", "generation", "access_epoch", "high_water", "last", "turns", "pending", "background_running",
	"created_at", "started_at", "ended_at", "queued_at", "expires_at", "not_before", "due_at", "since", "at", "answers_from",
	"lease_ttl_ms", "deadline_ms", "delay_ms", "duration_ms", "timeout_ms", "grace_ms", "idle_ttl_ms", "host_gone_ms",
	"bytes", "missing_bytes", "redacted", "sha256", "exit_code", "pid", "left_pids", "rows", "cols",
	// words of closed sets, and yes or no
	"kind", "mode", "state", "outcome", "cleanup", "lifetime", "on_reset", "bind", "allow", "outlives", "env_mode", "capabilities",
	"code", "signal", "timed_out", "stopped", "background", "login", "reopened", "for_submit", "reset", "started", "declined",
	"current", "peers", "reply_truncated", "from_mode", "to_mode",
)

func nameSet(names ...string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

// JSON returns a JSON text of which only what is on the list is left. What is no JSON is
// replaced as a whole.
func (s Strict) JSON(b []byte) []byte {
	out, err := rewrite(b, s.value)
	if err != nil {
		return []byte(`"` + Mask + `"`)
	}
	return out
}

// value keeps what stands below names that are all known, and is on the list itself.
func (s Strict) value(at place, token json.Token) (json.Token, bool) {
	if mayStay[at.name()] && !free(at) {
		return nil, false
	}
	switch token.(type) {
	case string:
		return Mask, true
	case json.Number:
		return 0, true
	case bool:
		return false, true
	}
	return nil, false
}

// free reports whether a value stands below a name whose content is anybody's: there a
// name on the list means something else.
func free(at place) bool {
	for _, n := range at.names[:len(at.names)-1] {
		if n == "data" || n == "env_set" || n == "answer" || n == "details" {
			return true
		}
	}
	return false
}
