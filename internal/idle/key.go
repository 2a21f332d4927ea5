package idle

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"keryx/events"
)

type keyID struct {
	sender events.PrincipalName
	key    string
}

type keyUse struct {
	digest  string
	receipt events.ReceiptID
	at      time.Time
}

// keyring remembers idempotency keys; order is that of their first use.
type keyring struct {
	uses  map[keyID]keyUse
	order []keyID
}

// add remembers the key of an item and returns the items that no key leads to any more.
func (k *keyring) add(it events.Item) (freed []events.ReceiptID) {
	if it.IdempotencyKey == "" {
		return nil
	}
	id := keyID{it.Sender, it.IdempotencyKey}
	use := keyUse{it.BodyDigest, it.Receipt, it.QueuedAt}
	old, again := k.uses[id]
	if again && old.receipt == use.receipt {
		return nil
	}
	if again {
		freed = append(freed, old.receipt)
	}
	k.drop(id)
	k.put(id, use)
	return append(freed, k.trim(it.QueuedAt)...)
}

func (k *keyring) put(id keyID, use keyUse) {
	if k.uses == nil {
		k.uses = make(map[keyID]keyUse)
	}
	k.uses[id] = use
	k.order = append(k.order, id)
}

// drop forgets a key whose life is over, so that it may be used again.
func (k *keyring) drop(id keyID) {
	if _, ok := k.uses[id]; ok {
		delete(k.uses, id)
		k.order = slices.DeleteFunc(k.order, func(o keyID) bool { return o == id })
	}
}

func (k *keyring) trim(now time.Time) (freed []events.ReceiptID) {
	for len(k.order) > 0 {
		first := k.order[0]
		if len(k.order) <= MaxKeys && now.Sub(k.uses[first].at) <= KeyLife {
			break
		}
		freed = append(freed, k.uses[first].receipt)
		delete(k.uses, first)
		k.order = k.order[1:]
	}
	return freed
}

// Keyed returns the item for which a sender used an idempotency key within
// [KeyLife], and the digest of its body.
func (q *Queue) Keyed(sender events.PrincipalName, key string, now time.Time) (id events.ReceiptID, digest string, ok bool) {
	use, ok := q.keys.uses[keyID{sender, key}]
	if !ok || now.Sub(use.at) > KeyLife {
		return "", "", false
	}
	return use.receipt, use.digest, true
}

// Keys returns the keys alive at a time, oldest first, with where their items stand.
func (q *Queue) Keys(session events.SessionID, now time.Time) []events.KeyedReceipt {
	var out []events.KeyedReceipt
	for _, id := range q.keys.order {
		use := q.keys.uses[id]
		if now.Sub(use.at) > KeyLife {
			continue
		}
		r, _ := q.Receipt(session, use.receipt)
		out = append(out, events.KeyedReceipt{
			Sender: id.sender, Key: id.key, BodyDigest: use.digest, At: use.at, Receipt: r,
		})
	}
	return out
}

// Remember restores keys, and where their items stand, unless known.
func (q *Queue) Remember(keys []events.KeyedReceipt) {
	for _, k := range keys {
		if _, ok := q.receipts[k.Receipt.ID]; !ok {
			r := k.Receipt
			if r.State == events.StateOffered { // an offer does not outlive its epoch
				r.State = events.StateQueued
			}
			q.stand(r.ID, Standing{
				Epoch: r.Epoch, Sequence: r.Sequence, State: r.State, Outcome: r.Outcome, Turn: r.Turn,
				Reason: r.Reason, Sender: k.Sender, Mode: r.Mode, Asked: r.DowngradedFrom, Late: r.Late, keyed: true,
			})
		}
		id := keyID{k.Sender, k.Key}
		if _, ok := q.keys.uses[id]; !ok {
			q.keys.put(id, keyUse{k.BodyDigest, k.Receipt.ID, k.At})
		}
	}
	slices.SortStableFunc(q.keys.order, func(a, b keyID) int {
		return q.keys.uses[a].at.Compare(q.keys.uses[b].at)
	})
}

// Digest returns what idempotency keys are compared on: SHA-256, in hex, of kind,
// text and data.
func Digest(kind events.ItemKind, b events.Body) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(kind), []byte(b.Text), b.Data} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
