package explain

import (
	"encoding/json"
	"slices"
	"strings"

	"keryx/events"
)

// link is what an event is about.
type link struct {
	receipts []events.ReceiptID
	offer    events.OfferID
	turn     events.TurnID
	exec     events.ExecID
	told     events.ExecID // the exec whose end a message tells
}

// shape has the members by which data structs name what they are about.
type shape struct {
	Item struct {
		Receipt        events.ReceiptID `json:"receipt"`
		IdempotencyKey string           `json:"idempotency_key"`
		Kind           events.ItemKind  `json:"kind"`
	} `json:"item"`
	Receipt     events.ReceiptID   `json:"receipt"`
	Items       []events.ReceiptID `json:"items"`
	Settled     []events.ReceiptID `json:"settled"`
	Dropped     []events.ReceiptID `json:"dropped"`
	Invalidated []events.ReceiptID `json:"invalidated"`
	Offer       events.OfferID     `json:"offer"`
	Turn        events.TurnID      `json:"turn"`
	Exec        events.ExecID      `json:"exec"`
}

// exitPrefix begins the idempotency key of a message that tells the end of an exec.
const exitPrefix = "exec:"

// linkOf reads what an event is about; nothing of one that cannot be decoded.
func linkOf(r events.Record) link {
	var s shape
	if json.Unmarshal(r.Data, &s) != nil {
		return link{}
	}
	l := link{offer: s.Offer, turn: s.Turn, exec: s.Exec}
	l.receipts = slices.Concat(s.Items, s.Settled, s.Dropped, s.Invalidated)
	for _, one := range []events.ReceiptID{s.Receipt, s.Item.Receipt} {
		if one != "" {
			l.receipts = append(l.receipts, one)
		}
	}
	if id, ok := strings.CutPrefix(s.Item.IdempotencyKey, exitPrefix); ok && s.Item.Kind == events.ItemJobExit {
		l.told = events.ExecID(id)
	}
	return l
}
