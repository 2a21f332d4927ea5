package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// steersWaiting is how many steers of a turn may wait for its handler. What comes while
// so many wait is told again by the bus.
const steersWaiting = 16

// Steer is a message for the running turn. It is the turn's only once Take has returned
// nil; until then it may be withdrawn, and if the turn ends it is delivered as the next.
type Steer struct {
	Items []events.Item

	take    func(context.Context) error
	decline func(context.Context, string) error
}

// Take makes the items those of the turn, with which they will settle. The handler gives
// them to its agent only after it returned nil. An unknown_offer refusal means that the
// steer was withdrawn.
func (s Steer) Take(ctx context.Context) error { return s.take(ctx) }

// Decline leaves the items to the next turn.
func (s Steer) Decline(ctx context.Context, reason string) error { return s.decline(ctx, reason) }

// Steers returns the messages that go into the running turn; nil if the host did not
// declare the capability steer. It is never closed: stop receiving when the turn is done.
func (t *Turn) Steers() <-chan Steer { return t.steers }

func (h *host) canSteer() bool { return slices.Contains(h.cfg.Capabilities, events.CapSteer) }

// steer hands a steer to the handler of its turn, once.
func (h *host) steer(m *nats.Msg) error {
	var o events.Steer
	if err := json.Unmarshal(m.Data, &o); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.sessions[o.Session]
	if e == nil || e.fence != o.Fence || e.running == nil || e.running.id != o.Turn || e.knows(o.Offer) {
		return nil // the turn is over, for which the bus takes the steer back, or it is a repeat
	}
	s := Steer{Items: o.Items}
	s.take = func(ctx context.Context) error {
		_, err := ask[events.Accepted](ctx, h.conn, events.CmdTurnAccept, events.Accept{
			Session: o.Session, Fence: o.Fence, Offer: o.Offer, Turn: o.Turn,
		})
		return h.steered(e, o, err)
	}
	s.decline = func(ctx context.Context, reason string) error {
		return h.steered(e, o, h.conn.Do(ctx, events.CmdTurnDecline, events.Decline{
			Session: o.Session, Fence: o.Fence, Offer: o.Offer, Reason: reason,
		}, nil))
	}
	select {
	case e.running.steers <- s:
		e.remember(knownOffer{id: o.Offer, turn: o.Turn})
	default: // the handler is behind; the bus tells it again
	}
	return nil
}

// steered does what follows an answer to a steer. One that the bus has not taken may be
// handed out again.
func (h *host) steered(e *hosted, o events.Steer, err error) error {
	switch {
	case err == nil, errors.Is(err, events.ErrOf(events.CodeUnknownOffer)):
	case errors.Is(err, events.ErrOf(events.CodeStaleFence)):
		h.lose(o.Session, o.Fence)
	default:
		h.mu.Lock()
		e.forget(o.Offer)
		h.mu.Unlock()
	}
	return err
}
