package authority

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"keryx/events"
)

// nameEntry is a name's record and where it stands in the log.
type nameEntry struct {
	record   events.NameRecord
	sequence events.Sequence
}

// sessionIndex finds lanes by session, name, receipt and turn. It is a projection of
// the log, filled at the beginning of a term and by every commit.
type sessionIndex struct {
	mu       sync.RWMutex
	lanes    map[events.SessionID]*lane
	names    map[string]nameEntry // by id subject
	receipts map[events.ReceiptID]*lane
	turns    map[events.TurnID]*lane
	tasks    map[taskKey]*lane
}

type taskKey struct {
	profile events.Profile
	task    events.TaskID
}

func newSessionIndex() *sessionIndex {
	return &sessionIndex{
		lanes:    make(map[events.SessionID]*lane),
		names:    make(map[string]nameEntry),
		receipts: make(map[events.ReceiptID]*lane),
		turns:    make(map[events.TurnID]*lane),
		tasks:    make(map[taskKey]*lane),
	}
}

func (x *sessionIndex) count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.lanes)
}

// lane returns the lane of a session of this profile, or nil. A session of another
// profile is as unknown as one that never was.
func (x *sessionIndex) lane(p events.Profile, id events.SessionID) *lane {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if l := x.lanes[id]; l != nil && l.profile == p {
		return l
	}
	return nil
}

// put adds a lane if its session has none, and returns the session's lane.
func (x *sessionIndex) put(l *lane) *lane {
	x.mu.Lock()
	defer x.mu.Unlock()
	if cur := x.lanes[l.id]; cur != nil {
		return cur
	}
	x.lanes[l.id] = l
	return l
}

// dropUnborn forgets a lane whose first event could not be appended.
func (x *sessionIndex) dropUnborn(l *lane) {
	if l.state.Exists() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lanes[l.id] == l && !l.unread {
		delete(x.lanes, l.id)
	}
}

// name returns a name's entry. Its sequence is that of the last record under the
// name's hash even when that record is another name's.
func (x *sessionIndex) name(p events.Profile, n events.Name) (nameEntry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.names[events.IDSubject(p, n)]
	return e, ok && e.record.Name == n
}

func (x *sessionIndex) setName(p events.Profile, e nameEntry) {
	x.setNameAt(events.IDSubject(p, e.record.Name), e)
}

func (x *sessionIndex) setNameAt(subject string, e nameEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if cur, ok := x.names[subject]; !ok || cur.sequence < e.sequence {
		x.names[subject] = e
	}
}

func (x *sessionIndex) byReceipt(p events.Profile, id events.ReceiptID) *lane {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return ofProfile(x.receipts[id], p)
}

func (x *sessionIndex) byTurn(p events.Profile, id events.TurnID) *lane {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return ofProfile(x.turns[id], p)
}

func (x *sessionIndex) byTask(p events.Profile, id events.TaskID) *lane {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.tasks[taskKey{p, id}]
}

func ofProfile(l *lane, p events.Profile) *lane {
	if l == nil || l.profile != p {
		return nil
	}
	return l
}

// note indexes what an event brings that can be asked for by id. data is the event's
// data struct.
func (x *sessionIndex) note(l *lane, data any) {
	switch d := data.(type) {
	case events.ContinuationQueued:
		x.mu.Lock()
		defer x.mu.Unlock()
		x.receipts[d.Item.Receipt] = l
	case events.TurnStarted:
		x.mu.Lock()
		defer x.mu.Unlock()
		x.turns[d.Turn] = l
		if d.TaskID != "" {
			x.tasks[taskKey{l.profile, d.TaskID}] = l
		}
	}
}

// dataOf decodes the data of those types that [sessionIndex.note] looks at.
func dataOf(r events.Record) any {
	switch r.Type {
	case events.TypeContinuationQueued:
		if d, err := events.DataOf[events.ContinuationQueued](r); err == nil {
			return d
		}
	case events.TypeTurnStarted:
		if d, err := events.DataOf[events.TurnStarted](r); err == nil {
			return d
		}
	}
	return nil // also when it cannot be decoded: the fold has said so
}

// all returns the lanes of a profile in order of session id; of every profile if p
// is empty.
func (x *sessionIndex) all(p events.Profile) iter.Seq[*lane] {
	x.mu.RLock()
	lanes := make([]*lane, 0, len(x.lanes))
	for _, l := range x.lanes {
		if p == "" || l.profile == p {
			lanes = append(lanes, l)
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(lanes, func(a, b *lane) int { return strings.Compare(string(a.id), string(b.id)) })
	return slices.Values(lanes)
}
