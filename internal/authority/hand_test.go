package authority_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// byHand is a host driven step by step by a test.
type byHand struct {
	t      testing.TB
	conn   *client.Conn
	id     events.SessionID
	fence  events.Fence
	ttl    time.Duration
	offers chan events.Offer
	stops  chan events.InterruptTurn
}

// attachByHand attaches a host instance to a session and listens to what it is told.
func attachByHand(t testing.TB, b *bus, c *client.Conn, id events.SessionID) *byHand {
	t.Helper()
	return attachFor(t, b, c, id, 2*time.Second)
}

// attachFor is attachByHand for a host that may be silent for ttl.
func attachFor(t testing.TB, b *bus, c *client.Conn, id events.SessionID, ttl time.Duration) *byHand {
	t.Helper()
	h := &byHand{t: t, conn: c, id: id, ttl: ttl, offers: make(chan events.Offer, 64), stops: make(chan events.InterruptTurn, 64)}
	p := c.Principal()
	sub, err := c.NATS().Subscribe(events.HostAll(p.Profile, p.Name, c.Instance()), h.take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() }) // its connection may be closed by now
	if err := c.NATS().Flush(); err != nil {
		t.Fatal(err)
	}
	h.attach()
	return h
}

func (h *byHand) attach() {
	h.t.Helper()
	h.fence = do[events.Attached](h.t, h.conn, events.CmdSessionAttach, events.Attach{
		Session: h.id, Instance: h.conn.Instance(), LeaseTTLMS: h.ttl.Milliseconds(),
		Capabilities: []events.Capability{events.CapInterrupt, events.CapIdempotentOffer},
	}).Fence
}

func (h *byHand) take(m *nats.Msg) {
	var offer events.Offer
	var stop events.InterruptTurn
	if json.Unmarshal(m.Data, &offer) == nil && offer.Offer != "" {
		h.offers <- offer
	} else if json.Unmarshal(m.Data, &stop) == nil && stop.Turn != "" {
		h.stops <- stop
	}
}

// accept takes the next offer as a turn.
func (h *byHand) accept() events.TurnID {
	h.t.Helper()
	offer := wait(h.t, "an offer", h.offers)
	turn := events.TurnID(events.NewID())
	do[events.Accepted](h.t, h.conn, events.CmdTurnAccept, events.Accept{Session: h.id, Fence: h.fence, Offer: offer.Offer, Turn: turn})
	return turn
}

func (h *byHand) end(turn events.TurnID, o events.Outcome) events.Ended {
	h.t.Helper()
	return do[events.Ended](h.t, h.conn, events.CmdTurnEnd, events.End{Session: h.id, Fence: h.fence, Turn: turn, Outcome: o})
}

func wait[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("waited 10 s for %s", what)
		panic("unreachable")
	}
}
