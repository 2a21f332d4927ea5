package authority

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"keryx/events"
	"keryx/internal/snapshot"
)

// nameEntry is a name's record and where it stands in the log.
type nameEntry struct {
	record   events.NameRecord
	sequence events.Sequence
}

// sessionIndex finds lanes by session, name, receipt, turn and approval. It is a projection of
// the log, filled at the beginning of a term and by every commit.
type sessionIndex struct {
	mu    sync.RWMutex
	lanes map[events.SessionID]*lane
	slots []*lane              // by place; a lane that was dropped leaves nil
	names map[string]nameEntry // by id subject
	fresh []string             // subjects of names that came since they were last taken
	ids   *idIndex

	changedMu sync.Mutex
	changed   map[int]struct{} // segments of the kept index
}

func newSessionIndex() *sessionIndex {
	return &sessionIndex{
		lanes: make(map[events.SessionID]*lane),
		names: make(map[string]nameEntry),
		ids:   newIDIndex(),

		changed: make(map[int]struct{}),
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
	l.slot = len(x.slots)
	x.slots = append(x.slots, l)
	return l
}

// dropUnborn forgets a lane whose first event could not be appended.
func (x *sessionIndex) dropUnborn(l *lane) {
	if l.state == nil || l.state.Exists() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lanes[l.id] == l {
		delete(x.lanes, l.id)
		x.slots[l.slot] = nil
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
		x.fresh = append(x.fresh, subject)
	}
}

func (x *sessionIndex) byReceipt(p events.Profile, id events.ReceiptID) *lane {
	return x.byID(idReceipt, p, string(id))
}

func (x *sessionIndex) byTurn(p events.Profile, id events.TurnID) *lane {
	return x.byID(idTurn, p, string(id))
}

func (x *sessionIndex) byApproval(p events.Profile, id events.ApprovalID) *lane {
	return x.byID(idApproval, p, string(id))
}

func (x *sessionIndex) byTask(p events.Profile, id events.TaskID) *lane {
	return x.byID(idTask, p, string(id))
}

// byID returns the lane of the session that should know an id, or nil.
func (x *sessionIndex) byID(kind idKind, p events.Profile, id string) *lane {
	slot, ok := x.ids.find(kind, p, id)
	if !ok {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if l := x.slots[slot]; l != nil && l.profile == p {
		return l
	}
	return nil
}

// touch notes that what the kept index has of a place is old.
func (x *sessionIndex) touch(slot int) {
	x.changedMu.Lock()
	defer x.changedMu.Unlock()
	x.changed[slot/snapshot.SegmentSlots] = struct{}{}
}

// takeChanged returns the segments that changed since it was called last, whole.
func (x *sessionIndex) takeChanged() map[int][]snapshot.Entry {
	x.changedMu.Lock()
	changed := x.changed
	x.changed = make(map[int]struct{})
	x.changedMu.Unlock()
	out := make(map[int][]snapshot.Entry, len(changed))
	for n := range changed {
		entries := []snapshot.Entry{}
		for _, l := range x.segment(n) {
			if l != nil {
				entries = append(entries, l.entry())
			}
		}
		out[n] = entries
	}
	return out
}

// touchAll notes that nothing of the kept index may stay: everything is to be written.
func (x *sessionIndex) touchAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for slot := range x.slots {
		x.touch(slot)
	}
	x.fresh = slices.Collect(maps.Keys(x.names))
	x.ids.touchAll()
}

func (x *sessionIndex) segment(n int) []*lane {
	x.mu.RLock()
	defer x.mu.RUnlock()
	from := min(n*snapshot.SegmentSlots, len(x.slots))
	return slices.Clone(x.slots[from:min(from+snapshot.SegmentSlots, len(x.slots))])
}

// takeNames returns the names that came since it was called last.
func (x *sessionIndex) takeNames() []snapshot.Name {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]snapshot.Name, 0, len(x.fresh))
	for _, subject := range x.fresh {
		e, ok := x.names[subject]
		if !ok {
			continue // removed since
		}
		out = append(out, snapshot.Name{Subject: subject, Record: e.record, Sequence: e.sequence})
	}
	x.fresh = nil
	return out
}

// restore fills an empty index with what was kept.
func (x *sessionIndex) restore(t *term, c snapshot.Contents) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range c.Entries {
		for len(x.slots) <= e.Slot {
			x.slots = append(x.slots, nil)
		}
		l := newLane(t, e.Profile, e.Brief.Summary.Session)
		l.state, l.brief, l.slot = nil, e.Brief, e.Slot
		l.snapped.Store(e.Snapped)
		x.slots[e.Slot], x.lanes[l.id] = l, l
	}
	for _, n := range c.Names {
		if cur, ok := x.names[n.Subject]; !ok || cur.sequence < n.Sequence {
			x.names[n.Subject] = nameEntry{record: n.Record, sequence: n.Sequence}
		}
	}
	x.ids.restore(c.IDs)
}

// note indexes what an event brings that can be asked for by id. data is the event's
// data struct. The lane has been put.
func (x *sessionIndex) note(l *lane, data any) {
	switch d := data.(type) {
	case events.ContinuationQueued:
		x.ids.put(idReceipt, l.profile, string(d.Item.Receipt), l.slot)
	case events.TurnStarted:
		x.ids.put(idTurn, l.profile, string(d.Turn), l.slot)
		if d.TaskID != "" {
			x.ids.put(idTask, l.profile, string(d.TaskID), l.slot)
		}
	case events.ApprovalRequested:
		x.ids.put(idApproval, l.profile, string(d.Approval), l.slot)
	case events.CommandInvoked:
		x.ids.put(idInvocation, l.profile, string(d.Invocation), l.slot)
	case events.ExecRequested:
		x.ids.put(idExec, l.profile, string(d.Exec), l.slot)
	}
}

// dataOf decodes the data of those types that [sessionIndex.note] looks at.
func dataOf(r events.Record) any {
	switch r.Type {
	case events.TypeContinuationQueued:
		return dataAs[events.ContinuationQueued](r)
	case events.TypeTurnStarted:
		return dataAs[events.TurnStarted](r)
	case events.TypeApprovalRequested:
		return dataAs[events.ApprovalRequested](r)
	case events.TypeCommandInvoked:
		return dataAs[events.CommandInvoked](r)
	case events.TypeExecRequested:
		return dataAs[events.ExecRequested](r)
	}
	return nil
}

func dataAs[T any](r events.Record) any {
	d, err := events.DataOf[T](r)
	if err != nil {
		return nil // the fold has said so
	}
	return d
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
