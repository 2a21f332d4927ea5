package explain

import (
	"slices"

	"keryx/events"
)

// Trace picks, of a record told in order, the facts that led to where something stands.
// Make it with [New]; it is not safe for concurrent use.
type Trace struct {
	kind events.FoundKind
	id   string

	facts  []events.Record
	turns  map[events.TurnID]bool
	offers map[events.OfferID]bool
	state  map[events.Type]events.Record // the newest of each, for a session
	queued map[events.ReceiptID]events.Record
}

// maxFacts bounds the facts of one thing; the first and the newest stay.
const maxFacts = 200

// New returns a trace of what an id names.
func New(kind events.FoundKind, id string) *Trace {
	return &Trace{
		kind: kind, id: id, turns: make(map[events.TurnID]bool), offers: make(map[events.OfferID]bool),
		state: make(map[events.Type]events.Record), queued: make(map[events.ReceiptID]events.Record),
	}
}

// Tell takes the next event.
func (t *Trace) Tell(r events.Record) {
	l := linkOf(r)
	switch t.kind {
	case events.FoundReceipt:
		t.receipt(r, l)
	case events.FoundTurn:
		t.turn(r, l)
	case events.FoundExec:
		t.exec(r, l)
	default:
		t.state[r.Type] = r
		t.waiting(r, l)
	}
}

// receipt keeps what names the message, and the turn that took it.
func (t *Trace) receipt(r events.Record, l link) {
	own := slices.Contains(l.receipts, events.ReceiptID(t.id))
	if own && r.Type == events.TypeTurnStarted {
		t.turns[l.turn] = true
	}
	if own || t.turns[l.turn] && isTurn(r.Type) {
		t.keep(r)
	}
}

func isTurn(t events.Type) bool {
	switch t {
	case events.TypeTurnStarted, events.TypeTurnSteered, events.TypeTurnEnded, events.TypeTurnReportedLate:
		return true
	}
	return false
}

// turn keeps the messages and the offer that became the turn, and all that names it. A
// message comes before anybody knows of which turn it is.
func (t *Trace) turn(r events.Record, l link) {
	switch r.Type {
	case events.TypeContinuationQueued:
		for _, id := range l.receipts {
			t.queued[id] = r
		}
	case events.TypeContinuationOffered:
		t.queued[events.ReceiptID(l.offer)] = r
	case events.TypeTurnStarted:
		if string(l.turn) != t.id {
			return
		}
		for _, id := range l.receipts {
			t.keepIf(t.queued, id)
		}
		t.keepIf(t.queued, events.ReceiptID(l.offer))
	}
	if string(l.turn) == t.id && r.Type != events.TypeContinuationOffered {
		t.keep(r)
	}
}

func (t *Trace) keepIf(from map[events.ReceiptID]events.Record, id events.ReceiptID) {
	if r, ok := from[id]; ok {
		t.keep(r)
	}
}

// exec keeps what names the exec, the turn that asked for it, and the message of its end.
func (t *Trace) exec(r events.Record, l link) {
	if r.Type == events.TypeTurnStarted {
		t.queued[events.ReceiptID(l.turn)] = r
	}
	own := string(l.exec) == t.id || string(l.told) == t.id
	if own && r.Type == events.TypeExecRequested && l.turn != "" {
		t.turns[l.turn] = true
		t.keepIf(t.queued, events.ReceiptID(l.turn))
	}
	if own || t.turns[l.turn] && r.Type == events.TypeTurnEnded {
		t.keep(r)
	}
}

// waiting remembers the messages that a session has not delivered.
func (t *Trace) waiting(r events.Record, l link) {
	for _, id := range l.receipts {
		switch r.Type {
		case events.TypeContinuationQueued:
			t.queued[id] = r
		case events.TypeContinuationOffered, events.TypeContinuationRequeued, events.TypeContinuationEdited,
			events.TypeContinuationDowngraded, events.TypeContinuationHeld, events.TypeContinuationReleased,
			events.TypeContinuationUnresolved:
		default:
			delete(t.queued, id)
		}
	}
}

func (t *Trace) keep(r events.Record) {
	if len(t.facts) == maxFacts {
		t.facts = slices.Delete(t.facts, maxFacts/2, maxFacts/2+1)
	}
	t.facts = append(t.facts, r)
}

// now are the types whose newest event says how a session stands.
var now = []events.Type{
	events.TypeSessionRegistered, events.TypeSessionReset, events.TypeSessionFinalized, events.TypeSessionAttached,
	events.TypeSessionDetached, events.TypeSessionIdle, events.TypeTurnStarted, events.TypeTurnEnded,
	events.TypeContinuationOffered, events.TypeContinuationUnresolved, events.TypeContinuationHeld,
}

// Facts returns what led to where it stands, in order.
func (t *Trace) Facts() []events.Record {
	if t.kind == events.FoundSessionKind {
		for _, typ := range now {
			if r, ok := t.state[typ]; ok {
				t.facts = append(t.facts, r)
			}
		}
		for _, r := range t.queued {
			t.facts = append(t.facts, r)
		}
	}
	slices.SortFunc(t.facts, func(a, b events.Record) int { return int(int64(a.Ordinal) - int64(b.Ordinal)) })
	out := slices.CompactFunc(t.facts, func(a, b events.Record) bool { return a.Ordinal == b.Ordinal })
	if len(out) > maxFacts {
		out = out[len(out)-maxFacts:]
	}
	return out
}
