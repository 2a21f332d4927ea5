package lifecycle

import (
	"keryx/events"
	"keryx/internal/idle"
)

// cancel takes back an item that was not accepted. The host of an open offer begins
// only after its accept was answered, so that an offered item can still be taken back.
func (s *State) cancel(c Command, d events.Cancel) (Decision, error) {
	r, it, err := s.ownItem(c, d.Receipt)
	switch {
	case err != nil:
		return Decision{}, err
	case r.State == events.StateCancelled:
		return answered(r)
	case it == nil || r.State == events.StateUnresolved:
		return Decision{}, wrongState(r, "cancelled")
	}
	return one(s.draft(events.TypeContinuationCancelled, events.ContinuationCancelled{
		Items: []events.ReceiptID{d.Receipt}, Reason: d.Reason,
	}))
}

// edit gives an item that was not accepted another body.
func (s *State) edit(c Command, d events.Edit) (Decision, error) {
	r, it, err := s.ownItem(c, d.Receipt)
	switch {
	case err != nil:
		return Decision{}, err
	case it == nil || r.State == events.StateUnresolved:
		return Decision{}, wrongState(r, "edited")
	}
	if err := checkBody(d.Body); err != nil {
		return Decision{}, err
	}
	if s.Queue.KeptBytes()-idle.Size(it.Body)+idle.Size(d.Body) > idle.MaxWaitingBytes {
		return Decision{}, s.queueFull()
	}
	return one(s.draft(events.TypeContinuationEdited, events.ContinuationEdited(d)))
}

// requeue puts an unresolved item back, or lets a held one go. One that waits already is
// where its sender wants it.
func (s *State) requeue(c Command, d events.Requeue) (Decision, error) {
	r, it, err := s.ownItem(c, d.Receipt)
	if err != nil {
		return Decision{}, err
	}
	ids := []events.ReceiptID{d.Receipt}
	offer, unresolved := s.Queue.LastOffer(d.Receipt)
	switch {
	case unresolved && s.Open():
		return one(s.draft(events.TypeContinuationRequeued, events.ContinuationRequeued{
			Offer: offer, Items: ids, Reason: "requeued by " + string(c.Caller.Name),
		}))
	case s.Queue.Held(d.Receipt):
		return one(s.draft(events.TypeContinuationReleased, events.ContinuationReleased{
			Items: ids, Reason: "released by " + string(c.Caller.Name),
		}))
	case it != nil && r.State != events.StateUnresolved:
		return answered(r)
	case r.State == events.StateUnresolved:
		return Decision{}, leftBehind(r)
	}
	return Decision{}, wrongState(r, "requeued")
}

// discard ends an unresolved item. Those of epochs before the last are part of the past.
func (s *State) discard(c Command, d events.Discard) (Decision, error) {
	r, _, err := s.ownItem(c, d.Receipt)
	switch {
	case err != nil:
		return Decision{}, err
	case r.State == events.StateDiscarded:
		return answered(r)
	case r.State != events.StateUnresolved:
		return Decision{}, wrongState(r, "discarded")
	}
	if _, held := s.Queue.LastOffer(d.Receipt); !held {
		return Decision{}, leftBehind(r)
	}
	return one(s.draft(events.TypeContinuationDiscarded, events.ContinuationDiscarded{
		Items: []events.ReceiptID{d.Receipt}, Reason: d.Reason,
	}))
}

// ownItem returns an item that the caller may decide on: its sender, or an operator. it
// is nil when the item can be delivered no more.
func (s *State) ownItem(c Command, id events.ReceiptID) (r events.Receipt, it *events.Item, err error) {
	r, ok := s.Receipt(id)
	if !ok {
		return r, nil, events.Errorf(events.CodeUnknownReceipt, "no item has the receipt %s", id)
	}
	if kept, held := s.Queue.Item(id); held {
		it = &kept
	}
	if c.Caller.Role == events.RoleOperator || s.Queue.Sender(id) == c.Caller.Name {
		return r, it, nil
	}
	return r, it, s.forbidden(c)
}

func leftBehind(r events.Receipt) error {
	return events.Errorf(events.CodeEpochEnded, "item %s was left unresolved in an epoch that has ended", r.ID)
}

func wrongState(r events.Receipt, verb string) error {
	return events.Errorf(events.CodeWrongState, "item %s is %s and cannot be %s", r.ID, r.State, verb).
		With("state", string(r.State))
}

func checkBody(b events.Body) error {
	if idle.Size(b) <= events.MaxBody {
		return nil
	}
	e := events.Errorf(events.CodeTooLarge, "a body has at most %d bytes", events.MaxBody)
	e.Path = "/body"
	return e
}

func (s *State) queueFull() error {
	return events.Errorf(events.CodeQueueFull, "what waits in session %s has %d bytes", s.Session, s.Queue.KeptBytes())
}
