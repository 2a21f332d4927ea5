package client

import (
	"bytes"
	"context"
	"errors"

	"keryx/client/follow"
	"keryx/events"
)

// WaitReceipt waits until an item's receipt is as wanted, and returns it. It follows the
// session and asks for the receipt when an event names the item, so a state that lasts
// shorter than an answer takes may not be seen: ask for states that stay. Restarts of the
// bus only make it wait longer; with an error the receipt is the last known.
func (c *Conn) WaitReceipt(ctx context.Context, id events.ReceiptID, until func(events.Receipt) bool) (events.Receipt, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	look := func() (events.Receipt, error) {
		return patiently(ctx, func() (events.Receipt, error) { return c.Receipt(ctx, id) })
	}
	r, err := look()
	if err != nil || until(r) {
		return r, err
	}
	cfg := FollowConfig{
		Scopes: []events.Scope{r.Session.Scope()}, From: r.Sequence + 1,
		Types: []string{"turn.*", "continuation.*", "session.finalized", "session.reset"},
	}
	for rec, err := range c.Follow(ctx, cfg) {
		if err != nil && !isPassing(err) {
			return r, err
		}
		if err == nil && !names(rec, id, r.Turn) {
			continue
		}
		now, err := look()
		if err != nil {
			return r, err
		}
		if r = now; until(r) {
			return r, nil
		}
	}
	return r, context.Cause(ctx)
}

// names reports whether an event may say something of an item or its turn. Both ids are
// unique, so that looking for their text is enough; a text that quotes one costs a
// question.
func names(rec events.Record, id events.ReceiptID, turn events.TurnID) bool {
	return bytes.Contains(rec.Data, []byte(id)) || turn != "" && rec.Turn == turn
}

// isPassing reports whether a follower goes on behind an error.
func isPassing(err error) bool {
	var hole *HoleError
	var gap *follow.GapError
	return errors.As(err, &hole) || errors.As(err, &gap)
}
