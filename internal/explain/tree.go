package explain

import "keryx/events"

// Tree finds of each event the one that it came of. Its zero value is ready; it is told
// the events of a record in order, and not safe for concurrent use. Its memory grows with
// the messages, turns, execs and commands of the record.
type Tree struct {
	receipts map[events.ReceiptID]events.Ordinal
	offers   map[events.OfferID]events.Ordinal
	turns    map[events.TurnID]events.Ordinal
	ends     map[events.TurnID]events.Ordinal
	execs    map[events.ExecID]events.Ordinal
	exits    map[events.ExecID]events.Ordinal
	causes   map[events.CommandID]events.Ordinal
	attached events.Ordinal
}

// Parent takes the next event and returns the ordinal of the one that it came of; 0 for one
// that came of none of this record.
func (t *Tree) Parent(r events.Record) events.Ordinal {
	if t.receipts == nil {
		*t = Tree{
			receipts: make(map[events.ReceiptID]events.Ordinal), offers: make(map[events.OfferID]events.Ordinal),
			turns: make(map[events.TurnID]events.Ordinal), ends: make(map[events.TurnID]events.Ordinal),
			execs: make(map[events.ExecID]events.Ordinal), exits: make(map[events.ExecID]events.Ordinal),
			causes: make(map[events.CommandID]events.Ordinal),
		}
	}
	l := linkOf(r)
	parent := t.parent(r, l)
	t.note(r, l)
	if parent == r.Ordinal {
		return 0
	}
	return parent
}

func (t *Tree) parent(r events.Record, l link) events.Ordinal {
	switch r.Type {
	case events.TypeContinuationQueued:
		return or(t.exits[l.told], t.causes[r.Causation])
	case events.TypeContinuationOffered:
		return or(t.turns[l.turn], t.first(l))
	case events.TypeTurnStarted, events.TypeTurnSteered:
		return or(t.offers[l.offer], t.first(l))
	case events.TypeSessionIdle:
		return t.ends[l.turn]
	case events.TypeSessionDetached:
		return or(t.attached, t.causes[r.Causation])
	case events.TypeExecRequested:
		return or(t.turns[l.turn], t.causes[r.Causation])
	}
	return or(t.execs[l.exec], t.turns[l.turn], t.offers[l.offer], t.first(l), t.causes[r.Causation])
}

// first is where the first message that an event is about was queued.
func (t *Tree) first(l link) events.Ordinal {
	if len(l.receipts) == 0 {
		return 0
	}
	return t.receipts[l.receipts[0]]
}

func (t *Tree) note(r events.Record, l link) {
	if _, known := t.causes[r.Causation]; r.Causation != "" && !known {
		t.causes[r.Causation] = r.Ordinal
	}
	switch r.Type {
	case events.TypeContinuationQueued:
		for _, id := range l.receipts {
			t.receipts[id] = r.Ordinal
		}
	case events.TypeContinuationOffered:
		t.offers[l.offer] = r.Ordinal
	case events.TypeTurnStarted:
		t.turns[l.turn] = r.Ordinal
	case events.TypeTurnEnded:
		t.ends[l.turn] = r.Ordinal
	case events.TypeExecRequested:
		t.execs[l.exec] = r.Ordinal
	case events.TypeExecExited, events.TypeExecLost, events.TypeExecRefused:
		t.exits[l.exec] = r.Ordinal
	case events.TypeSessionAttached:
		t.attached = r.Ordinal
	}
}

func or(ordinals ...events.Ordinal) events.Ordinal {
	for _, o := range ordinals {
		if o != 0 {
			return o
		}
	}
	return 0
}
