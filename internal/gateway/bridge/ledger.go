package bridge

import (
	"time"

	"keryx/events"
)

// partID names one part of a send.
type partID struct {
	send string
	part int
}

// messageID names a message of the platform.
type messageID struct{ chat, message string }

// ledger is what an account's record says: the fold of the scope account-NAME. It is pure,
// and not safe for concurrent use. A fact that is on record twice changes nothing.
type ledger struct {
	// through is up to where in the log everything that asked for a send is done.
	through events.Sequence
	sent    map[partID]events.Sequence // beyond through; the value is what asked for it
	dropped map[string]events.Sequence // sends that were given up, in the same way
	// delayed says until when nothing may be sent to a place.
	delayed  map[events.Place]time.Time
	attempts map[partID]int
	cursor   string
	own      recent // messages that the account wrote
	received recent // messages that were taken
}

func newLedger() *ledger {
	return &ledger{
		sent: make(map[partID]events.Sequence), dropped: make(map[string]events.Sequence),
		delayed: make(map[events.Place]time.Time), attempts: make(map[partID]int),
	}
}

// fold takes a record; those of other types are not its concern.
func (l *ledger) fold(rec events.Record) error {
	switch rec.Type {
	case events.TypeGatewayReceived:
		return folding(rec, l.foldReceived)
	case events.TypeGatewaySent:
		return folding(rec, l.foldSent)
	case events.TypeGatewayDelayed:
		return folding(rec, l.foldDelayed)
	case events.TypeGatewayDropped:
		return folding(rec, l.foldDropped)
	}
	return nil
}

func folding[T any](rec events.Record, fold func(T)) error {
	d, err := events.DataOf[T](rec)
	if err == nil {
		fold(d)
	}
	return err
}

func (l *ledger) foldReceived(d events.GatewayReceived) {
	l.received.add(messageID{d.Place.Chat, d.Message})
	if d.Cursor != "" {
		l.cursor = d.Cursor
	}
}

func (l *ledger) foldSent(d events.GatewaySent) {
	id := partID{d.Send, d.Part}
	l.sent[id] = d.At
	delete(l.attempts, id)
	delete(l.delayed, d.Place)
	if d.Message != "" {
		l.own.add(messageID{d.Place.Chat, d.Message})
	}
	l.done(d.Through)
}

func (l *ledger) foldDelayed(d events.GatewayDelayed) {
	l.delayed[d.Place] = d.Until
	l.attempts[partID{d.Send, d.Part}] = d.Attempt
}

func (l *ledger) foldDropped(d events.GatewayDropped) {
	if d.Send != "" {
		l.dropped[d.Send] = d.At
		delete(l.delayed, d.Place)
		delete(l.attempts, partID{d.Send, d.Part})
	}
	l.done(d.Through)
}

// done forgets what nobody can ask for any more.
func (l *ledger) done(through events.Sequence) {
	if through <= l.through {
		return
	}
	l.through = through
	for id, at := range l.sent {
		if at <= through {
			delete(l.sent, id)
		}
	}
	for id, at := range l.dropped {
		if at <= through {
			delete(l.dropped, id)
		}
	}
}

// next is the first part of a send that is still to be sent, of parts; more than parts
// when there is none.
func (l *ledger) next(send string, parts int) int {
	if _, ok := l.dropped[send]; ok {
		return parts + 1
	}
	n := 1
	for n <= parts {
		if _, ok := l.sent[partID{send, n}]; !ok {
			break
		}
		n++
	}
	return n
}

// recentMost is how many messages of each kind are remembered.
const recentMost = 8192

// recent remembers the last messages. The zero value is empty.
type recent struct {
	set   map[messageID]struct{}
	order []messageID
}

func (r *recent) add(id messageID) {
	if r.has(id) {
		return
	}
	if r.set == nil {
		r.set = make(map[messageID]struct{})
	}
	r.set[id] = struct{}{}
	if r.order = append(r.order, id); len(r.order) > recentMost {
		delete(r.set, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent) has(id messageID) bool {
	_, ok := r.set[id]
	return ok
}
