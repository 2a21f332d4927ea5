package client

import (
	"context"
	"errors"

	"keryx/client/follow"
	"keryx/events"
)

// WaitReceipt waits until an item's receipt is as wanted, and returns it. until is called
// with the receipt as it is, and then for each state that the item goes through from the
// time it was queued, as the session's record tells them. Restarts of the bus only make it
// wait longer. With an error the receipt is the last known.
func (c *Conn) WaitReceipt(ctx context.Context, id events.ReceiptID, until func(events.Receipt) bool) (events.Receipt, error) {
	look := func() (events.Receipt, error) {
		return patiently(ctx, func() (events.Receipt, error) { return c.Receipt(ctx, id) })
	}
	r, err := look()
	if err != nil || until(r) {
		return r, err
	}
	cfg := FollowConfig{
		Scopes: []events.Scope{r.Session.Scope()}, From: r.Sequence,
		Types: []string{"turn.*", "continuation.*", "session.finalized", "session.reset"},
	}
	for rec, err := range c.Follow(ctx, cfg) {
		switch {
		case isPassing(err): // what cannot be read may have been about the item
			now, err := look()
			if err != nil {
				return r, err
			}
			r = now
		case err != nil:
			return r, err
		case !advance(&r, rec):
			continue
		}
		if until(r) {
			return r, nil
		}
	}
	return r, context.Cause(ctx)
}

// isPassing reports whether a follower goes on behind an error.
func isPassing(err error) bool {
	var hole *HoleError
	var gap *follow.GapError
	return errors.As(err, &hole) || errors.As(err, &gap)
}
