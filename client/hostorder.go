package client

import (
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// order is an offer with the trace it belongs to.
type order struct {
	events.Offer
	msg *nats.Msg
}

// knownOffer remembers an offer that was answered or is being answered.
type knownOffer struct {
	id   events.OfferID
	turn events.TurnID // empty if it was declined
}

// knownOffers is how many offers of a session are remembered: one is open at a time, so
// that a repeat is of one of the last.
const knownOffers = 16

// order does what the bus told this instance.
func (h *host) order(m *nats.Msg) {
	verb := events.HostVerb(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	var err error
	switch verb {
	case events.HostOffer:
		o := order{msg: m}
		if err = json.Unmarshal(m.Data, &o.Offer); err == nil {
			h.offer(o)
		}
	case events.HostSteer:
		err = h.steer(m)
	case events.HostInterrupt:
		var i events.InterruptTurn
		if err = json.Unmarshal(m.Data, &i); err == nil {
			h.interrupt(i)
		}
	case events.HostDetached:
		var d events.HostDetach
		if err = json.Unmarshal(m.Data, &d); err == nil {
			h.lose(d.Session, d.Fence)
		}
	default:
		h.cfg.Logger.Warn("an order that this host does not know", "verb", verb)
	}
	if err != nil {
		h.cfg.Logger.Error("an order cannot be read", "verb", verb, "error", err)
	}
}

func (h *host) interrupt(i events.InterruptTurn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.sessions[i.Session]; e != nil && e.running != nil && e.running.id == i.Turn {
		e.running.cancel(ErrInterrupted)
	}
}

// offer takes an offer once, as a turn, or declines it. A repeat is left to the answer
// that is under way, which is sent until the bus has taken it.
func (h *host) offer(o order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.sessions[o.Session]
	switch {
	case e == nil || h.stopping:
		return // offered before a detach; it comes again to whoever attaches
	case !e.attached:
		e.early = append(e.early[:min(len(e.early), knownOffers)], o)
		return
	case e.fence != o.Fence || e.knows(o.Offer.Offer):
		return
	}
	switch {
	case e.running != nil:
		h.declineLocked(e, o, "the turn before has not returned")
	case !h.slots.TryAcquire(1):
		h.declineLocked(e, o, "host at capacity")
	default:
		h.startLocked(h.life, e, o)
	}
}

func (e *hosted) knows(id events.OfferID) bool {
	for _, k := range e.known {
		if k.id == id {
			return true
		}
	}
	return false
}

func (e *hosted) remember(k knownOffer) {
	e.known = append(e.known, k)
	if len(e.known) > knownOffers {
		e.known = e.known[1:]
	}
}

// forget makes an offer new again.
func (e *hosted) forget(id events.OfferID) {
	for i, k := range e.known {
		if k.id == id {
			e.known = append(e.known[:i:i], e.known[i+1:]...)
			return
		}
	}
}
