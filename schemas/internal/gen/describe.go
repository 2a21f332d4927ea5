package main

import (
	"reflect"
	"strings"
	"unicode"
)

// glossary explains properties that mean the same wherever they stand and need no
// comment of their own in the Go code.
var glossary = map[string]string{
	"access_epoch":       "Who may type into the target; it rises when that changes.",
	"all_names":          "Every name of the session, those of past epochs too.",
	"argv":               "The argument list of the process.",
	"at":                 "When it was.",
	"attached":           "The host that drives the session; absent when none does.",
	"background_running": "How many execs of the session run in the background.",
	"body":               "What the item says.",
	"body_digest":        "The SHA-256 of what an idempotency key is compared on.",
	"bytes":              "How many bytes the stream had.",
	"capabilities":       "What the host can do beyond running turns.",
	"carry":              "The state that outlives the epoch before.",
	"created":            "True when the session is new.",
	"created_at":         "When the session was registered first.",
	"cols":               "How many characters a line has.",
	"current":            "True when the name leads to the open epoch, false when only to the one it was given in.",
	"cwd":                "The working directory.",
	"deadline_ms":        "How long the receiver has to answer, in milliseconds.",
	"dir":                "Where the package's files are, on the executor's machine.",
	"duration_ms":        "Wall time from start to end, in milliseconds.",
	"enabled":            "True when it is enabled.",
	"ended_at":           "When the turn ended.",
	"env_set":            "Environment variables to set, exactly as given.",
	"env_unset":          "Environment variables to take away.",
	"error":              "What went wrong.",
	"exit_code":          "The exit status, or -1 when a signal ended it.",
	"executable":         "True for a file that can be run.",
	"execs":              "The execs that have not ended.",
	"executor":           "The executor that the target belongs to.",
	"finalize_reason":    "Why the epoch ended.",
	"generation":         "Which registration of the target; it rises with each one of its name.",
	"grace_ms":           "Time from TERM to KILL in milliseconds. Absent: 5 s. 0: KILL at once.",
	"holder":             "Who holds the lease.",
	"home":               "The home directory of the profile that the conversation belongs to.",
	"host":               "The host that drives the session.",
	"idempotency_key":    "With the same key again within 24 h, a sender gets the first receipt.",
	"items":              "The receipts of the items.",
	"last_at":            "When the last event was.",
	"last_ordinal":       "The ordinal of the last event.",
	"last_sequence":      "The stream sequence of the last event.",
	"lease_fence":        "The fence of the target's lease.",
	"lease_ttl_ms":       "How long the host may be silent before it counts as lost, in milliseconds.",
	"left_pids":          "The processes that could not be ended.",
	"lineage":            "The stored ids of the epoch, oldest first.",
	"message":            "What went wrong, for people.",
	"more":               "True when another page follows.",
	"owner":              "The principal that it belongs to.",
	"packages":           "The packages, by key or by a name that only one of them has.",
	"pending":            "How many items wait in the queue.",
	"planned_at":         "When it was planned.",
	"pid":                "The process id on the executor's machine.",
	"queue":              "The items that wait, in order.",
	"queued_at":          "When the item was queued.",
	"reason":             "Why it happened.",
	"reply":              "What the agent answered.",
	"reply_truncated":    "True when the middle of the reply was cut to fit.",
	"requester":          "Who asked for it.",
	"rows":               "How many lines the terminal has.",
	"revision":           "The stream sequence of the lease's record.",
	"running":            "The turn that runs; absent when none does.",
	"sender":             "Who sent the item.",
	"sessions":           "The sessions of the page, in id order.",
	"settled":            "The receipts of the items that ended with the turn.",
	"sha256":             "The SHA-256 of all bytes of the stream, in hexadecimal.",
	"shell":              "The shell that a caller may ask for.",
	"signal":             "The signal that ended the process, such as SIGKILL.",
	"since":              "When the session became idle.",
	"source":             "Where the conversation comes from, such as a platform.",
	"started_at":         "When the turn started.",
	"streams":            "What was written to each stream.",
	"surface":            "Where the user sees the conversation, such as a channel or a terminal.",
	"targets":            "The targets of the profile.",
	"text":               "What is said.",
	"timed_out":          "True when the time limit ended it.",
	"tips":               "The newest event of each scope.",
	"to":                 "A session id, or any name of the session.",
	"ttl_ms":             "How long the lease lasts without a renewal, in milliseconds.",
	"turns":              "How many turns have started so far, over all epochs.",
	"version":            "The package's own version, for people.",
	"waiting_for":        "What the session waits for, in words.",
}

// describe returns what a field means: its own comment, else what its name always
// means, else what its type is.
func (w words) describe(owner reflect.Type, f reflect.StructField, name string) string {
	if doc := w.fields[owner.Name()+"."+f.Name]; doc != "" {
		return sentence(doc, f.Name, name)
	}
	if doc := glossary[name]; doc != "" {
		return doc
	}
	t := f.Type
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Name() == "" {
		t = t.Elem()
	}
	return sentence(w.docs[t.Name()], t.Name(), "")
}

// sentence turns a Go comment that begins with a Go name into words for readers of a
// schema: the name goes, or becomes the property's.
func sentence(doc, goName, name string) string {
	rest, ok := strings.CutPrefix(doc, goName+" ")
	if !ok {
		return capital(doc)
	}
	for _, verb := range []string{"is ", "are "} {
		if after, ok := strings.CutPrefix(rest, verb); ok {
			return capital(after)
		}
	}
	if name != "" {
		return name + " " + rest
	}
	return capital(rest)
}

func capital(s string) string {
	for i, r := range s {
		s = string(unicode.ToUpper(r)) + s[i+len(string(r)):]
		break
	}
	if s != "" && !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
