package idle

import (
	"encoding/json"
	"slices"
	"time"

	"keryx/events"
)

// dump is a queue in a form that can be kept. Every field of [Queue] has its place here;
// a test holds them together.
type dump struct {
	Waiting    []keptEntry        `json:"waiting,omitempty"`
	Scheduled  []keptEntry        `json:"scheduled,omitempty"`
	Held       []keptEntry        `json:"held,omitempty"`
	Offered    []keptEntry        `json:"offered,omitempty"`
	Unresolved []keptEntry        `json:"unresolved,omitempty"`
	Offer      *Offer             `json:"offer,omitempty"`
	Automatic  int                `json:"automatic,omitempty"`
	Receipts   []keptStanding     `json:"receipts,omitempty"`
	Ended      []events.ReceiptID `json:"ended,omitempty"`
	Keys       []keptKey          `json:"keys,omitempty"`
	Whole      bool               `json:"whole,omitempty"`
}

type keptEntry struct {
	Item       events.Item    `json:"item"`
	NotBefore  time.Time      `json:"not_before,omitzero"`
	Declines   int            `json:"declines,omitempty"`
	Offer      events.OfferID `json:"offer,omitempty"`
	Unfit      string         `json:"unfit,omitempty"`
	Free       bool           `json:"free,omitempty"`
	Interrupts events.TurnID  `json:"interrupts,omitempty"`
	PassedOver events.TurnID  `json:"passed_over,omitempty"`
}

type keptStanding struct {
	ID       events.ReceiptID     `json:"id"`
	Epoch    events.Epoch         `json:"epoch,omitempty"`
	Sequence events.Sequence      `json:"sequence,omitempty"`
	State    events.ItemState     `json:"state,omitempty"`
	Outcome  events.Outcome       `json:"outcome,omitempty"`
	Turn     events.TurnID        `json:"turn,omitempty"`
	Reason   string               `json:"reason,omitempty"`
	Sender   events.PrincipalName `json:"sender,omitempty"`
	Mode     events.Mode          `json:"mode,omitempty"`
	Asked    events.Mode          `json:"asked,omitempty"`
	Late     events.Outcome       `json:"late,omitempty"`
	Over     bool                 `json:"over,omitempty"`
	Out      bool                 `json:"out,omitempty"`
	Keyed    bool                 `json:"keyed,omitempty"`
}

type keptKey struct {
	Sender  events.PrincipalName `json:"sender"`
	Key     string               `json:"key"`
	Digest  string               `json:"digest,omitempty"`
	Receipt events.ReceiptID     `json:"receipt,omitempty"`
	At      time.Time            `json:"at,omitzero"`
}

// MarshalJSON implements json.Marshaler: the whole queue, for a snapshot.
func (q Queue) MarshalJSON() ([]byte, error) {
	d := dump{
		Waiting: keep(q.waiting), Scheduled: keep(q.scheduled), Held: keep(q.held),
		Offered: keep(q.offered), Unresolved: keep(q.unresolved), Offer: q.offer,
		Automatic: q.automatic, Receipts: keepStandings(q.receipts), Ended: q.ended, Whole: q.whole,
	}
	for _, id := range q.keys.order {
		use := q.keys.uses[id]
		d.Keys = append(d.Keys, keptKey{Sender: id.sender, Key: id.key, Digest: use.digest, Receipt: use.receipt, At: use.at})
	}
	return events.MarshalData(d)
}

// UnmarshalJSON implements json.Unmarshaler.
func (q *Queue) UnmarshalJSON(b []byte) error {
	var d dump
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	*q = Queue{
		waiting: restore(d.Waiting), scheduled: restore(d.Scheduled), held: restore(d.Held),
		offered: restore(d.Offered), unresolved: restore(d.Unresolved), offer: d.Offer,
		automatic: d.Automatic, ended: d.Ended, whole: d.Whole,
	}
	for _, k := range d.Receipts {
		if q.receipts == nil {
			q.receipts = make(map[events.ReceiptID]Standing, len(d.Receipts))
		}
		q.receipts[k.ID] = k.standing()
	}
	for _, k := range d.Keys {
		q.keys.put(keyID{k.Sender, k.Key}, keyUse{k.Digest, k.Receipt, k.At})
	}
	return nil
}

func keep(list []Entry) []keptEntry {
	var out []keptEntry
	for i := range list {
		e := &list[i]
		out = append(out, keptEntry{
			Item: e.Item, NotBefore: e.NotBefore, Declines: e.Declines, Offer: e.offer, Unfit: e.unfit,
			Free: e.free, Interrupts: e.interrupts, PassedOver: e.passedOver,
		})
	}
	return out
}

func restore(list []keptEntry) []Entry {
	var out []Entry
	for i := range list {
		e := &list[i]
		out = append(out, Entry{
			Item: e.Item, NotBefore: e.NotBefore, Declines: e.Declines, offer: e.Offer, unfit: e.Unfit,
			free: e.Free, interrupts: e.Interrupts, passedOver: e.PassedOver,
		})
	}
	return out
}

// keepStandings returns them in order of receipt, so that a queue has one form.
func keepStandings(m map[events.ReceiptID]Standing) []keptStanding {
	var out []keptStanding
	for id, st := range m {
		out = append(out, keptStanding{
			ID: id, Epoch: st.Epoch, Sequence: st.Sequence, State: st.State, Outcome: st.Outcome, Turn: st.Turn,
			Reason: st.Reason, Sender: st.Sender, Mode: st.Mode, Asked: st.Asked, Late: st.Late,
			Over: st.over, Out: st.out, Keyed: st.keyed,
		})
	}
	slices.SortFunc(out, func(a, b keptStanding) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

func (k keptStanding) standing() Standing {
	return Standing{
		Epoch: k.Epoch, Sequence: k.Sequence, State: k.State, Outcome: k.Outcome, Turn: k.Turn,
		Reason: k.Reason, Sender: k.Sender, Mode: k.Mode, Asked: k.Asked, Late: k.Late,
		over: k.Over, out: k.Out, keyed: k.Keyed,
	}
}
