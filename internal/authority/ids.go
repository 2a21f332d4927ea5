package authority

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"keryx/events"
	"keryx/internal/snapshot"
)

// idKind tells apart what is asked for by an id alone.
type idKind byte

const (
	idReceipt idKind = 'r'
	idTurn    idKind = 't'
	idTask    idKind = 'k'
	idExec    idKind = 'x'

	idApproval idKind = 'a'
)

// idHash is the first 64 bits of the SHA-256 of kind, profile and id: what the index
// finds is looked for in the session itself, so two of one hash do no harm.
type idHash uint64

func hashID(kind idKind, p events.Profile, id string) idHash {
	sum := sha256.Sum256([]byte(string(kind) + string(p) + "\x00" + id))
	return idHash(binary.BigEndian.Uint64(sum[:]))
}

// idIndex leads from receipts, turns, tasks, execs and approvals to their sessions: 12 bytes an id
// instead of what they are about, which is in memory for the newest and in the log for
// all. It is safe for concurrent use.
type idIndex struct {
	mu    sync.RWMutex
	slots map[idHash]uint32
	fresh []snapshot.ID // added since they were last taken
}

func newIDIndex() *idIndex { return &idIndex{slots: make(map[idHash]uint32)} }

// put notes that an id is of a session. An id belongs to the first that has it, but a
// task to the last.
func (x *idIndex) put(kind idKind, p events.Profile, id string, slot int) {
	h := hashID(kind, p, id)
	x.mu.Lock()
	defer x.mu.Unlock()
	if cur, ok := x.slots[h]; ok && (kind != idTask || int(cur) == slot) {
		return
	}
	x.slots[h] = uint32(slot) //nolint:gosec // a place in a slice
	x.fresh = append(x.fresh, snapshot.ID{Hash: uint64(h), Slot: x.slots[h]})
}

// take returns what was added since it was called last.
func (x *idIndex) take() []snapshot.ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.fresh
	x.fresh = nil
	return out
}

// touchAll makes all that is there fresh.
func (x *idIndex) touchAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fresh = make([]snapshot.ID, 0, len(x.slots))
	for h, slot := range x.slots {
		x.fresh = append(x.fresh, snapshot.ID{Hash: uint64(h), Slot: slot})
	}
}

// restore fills an empty index.
func (x *idIndex) restore(kept []snapshot.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.slots = make(map[idHash]uint32, len(kept)+len(kept)/4)
	for _, id := range kept {
		x.slots[idHash(id.Hash)] = id.Slot
	}
}

// find returns the place of the session that an id is of.
func (x *idIndex) find(kind idKind, p events.Profile, id string) (slot int, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n, ok := x.slots[hashID(kind, p, id)]
	return int(n), ok
}
