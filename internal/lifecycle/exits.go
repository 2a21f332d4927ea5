package lifecycle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"keryx/events"
	"keryx/internal/idle"
)

// exitText bounds the command in what is said of its end.
const exitText = 200

// exitKey is the idempotency key of the item that says how an exec ended: it is queued
// once, whoever is the active authority.
func exitKey(id events.ExecID) string { return "exec:" + string(id) }

// oweExit notes that the end of a background exec is to be told to the session, in the
// epoch that asked for it: not if that is over.
func (s *State) oweExit(e Exec, how string, fact any) {
	if !e.Request.Spec.Background || e.Carried || e.Stopping || !s.Open() {
		return
	}
	data, err := json.Marshal(fact)
	if err != nil {
		data = nil // the text says what matters
	}
	argv := strings.Join(e.Request.Spec.Argv, " ")
	if len(argv) > exitText {
		argv = strings.ToValidUTF8(argv[:exitText], "") + "..."
	}
	s.exits = append(s.exits, events.Item{
		Kind: events.ItemJobExit, Mode: events.ModeEnqueue, Sender: e.Request.Selection.Executor,
		Body:           events.Body{Text: fmt.Sprintf("job %s %s: %s", e.Request.Exec, how, argv), Data: data},
		IdempotencyKey: exitKey(e.Request.Exec), OnReset: events.OnResetDrop, Epoch: s.Epoch,
	})
}

// toldExit forgets what is in the queue now.
func (s *State) toldExit(it events.Item) {
	s.exits = slices.DeleteFunc(s.exits, func(owed events.Item) bool { return owed.IdempotencyKey == it.IdempotencyKey })
}

// owedExit returns the first end that was not told yet and for which there is room.
func (s *State) owedExit(now time.Time, mint func() string) (Draft, bool) {
	if len(s.exits) == 0 || s.room(s.exits[0]) != nil {
		return Draft{}, false
	}
	it := s.exits[0]
	it.Receipt, it.QueuedAt = events.ReceiptID(mint()), now
	it.BodyDigest = idle.Digest(it.Kind, it.Body)
	return s.draft(events.TypeContinuationQueued, events.ContinuationQueued{Item: it}), true
}

// howExited says how an exec ended, in a few words.
func howExited(d events.ExecExited) string {
	after := (time.Duration(d.DurationMS) * time.Millisecond).Round(100 * time.Millisecond)
	switch {
	case d.TimedOut:
		return fmt.Sprintf("timed out after %v", after)
	case d.Stopped:
		return fmt.Sprintf("was stopped after %v", after)
	case d.Signal != "":
		return fmt.Sprintf("was ended by %s after %v", d.Signal, after)
	}
	return fmt.Sprintf("exited %d after %v", d.ExitCode, after)
}

// backgroundRunning counts the execs that run on after a turn's end.
func (s *State) backgroundRunning() (n int) {
	for _, e := range s.execs.open {
		if e.Request.Spec.Background && !e.Stopping {
			n++
		}
	}
	return n
}
