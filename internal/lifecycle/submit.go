package lifecycle

import (
	"slices"
	"time"

	"keryx/events"
	"keryx/internal/idle"
)

// submit takes a message into the queue, reopening the session for it if need be.
func (s *State) submit(c Command, d events.Submit) (Decision, error) {
	it, err := s.item(c, d)
	if err != nil {
		return Decision{}, err
	}
	switch r, ok, err := s.keyed(c, it); {
	case err != nil:
		return Decision{}, err
	case ok:
		return answered(r)
	}
	if !d.Follow {
		if err := s.checkVia(c.Via); err != nil {
			return Decision{}, err
		}
	}
	if err := s.room(it); err != nil {
		return Decision{}, err
	}
	if it, err = s.inMode(it); err != nil {
		return Decision{}, err
	}
	if s.Finalized {
		draft := s.reopen(c)
		reg := draft.Data.(events.SessionRegistered)
		reg.Owner, reg.ForSubmit = s.Owner, true
		draft.Data = reg
		return step(draft)
	}
	it.Receipt = events.ReceiptID(c.Mint())
	drafts := []Draft{s.draft(events.TypeContinuationQueued, events.ContinuationQueued{Item: it})}
	if it.Asked != "" {
		drafts = append(drafts, s.draft(events.TypeContinuationDowngraded, events.ContinuationDowngraded{
			Receipt: it.Receipt, From: it.Asked, To: it.Mode, Reason: s.incapable(it.Asked),
		}))
	}
	return Decision{Drafts: drafts}, nil
}

// item checks what is submitted and fills in what was left open.
func (s *State) item(c Command, d events.Submit) (events.Item, error) {
	kind, err := s.kind(c, d.Kind)
	if err != nil {
		return events.Item{}, err
	}
	if err := s.maySubmit(c, kind); err != nil {
		return events.Item{}, err
	}
	if err := checkBody(d.Body); err != nil {
		return events.Item{}, err
	}
	if d.InMS > 0 && !d.At.IsZero() {
		e := events.Errorf(events.CodeInvalid, "at and in_ms exclude each other")
		e.Path = "/in_ms"
		return events.Item{}, e
	}
	return timed(c.Now, d, events.Item{
		Kind: kind, Mode: or(d.Mode, events.ModeEnqueue), Body: d.Body, Sender: c.Caller.Name,
		IdempotencyKey: d.IdempotencyKey, BodyDigest: idle.Digest(kind, d.Body),
		OnReset: onReset(kind, d), Epoch: s.Epoch, QueuedAt: c.Now, Allow: d.Allow, Bind: bindings(d.Bind),
	}), nil
}

// timed says when an item is due and until when.
func timed(now time.Time, d events.Submit, it events.Item) events.Item {
	due := now
	if at := d.At; at.After(now) {
		due, it.NotBefore = at, at.UTC()
	} else if d.InMS > 0 {
		due = now.Add(millis(d.InMS))
		it.NotBefore = due.UTC()
	}
	if d.TTLMS > 0 {
		it.ExpiresAt = due.Add(millis(d.TTLMS)).UTC()
	}
	return it
}

func bindings(asked []events.Binding) []events.Binding {
	return slices.Compact(slices.Sorted(slices.Values(asked)))
}

// kind checks who may speak as what (design section 3). The default is what the
// caller's role says most often.
func (s *State) kind(c Command, kind events.ItemKind) (events.ItemKind, error) {
	switch c.Caller.Role {
	case events.RoleOperator, events.RoleGateway:
		return or(kind, events.ItemUser), nil
	case events.RoleHost:
		if kind = or(kind, events.ItemPeer); kind != events.ItemUser {
			return kind, nil
		}
	case events.RoleExecutor:
		if kind = or(kind, events.ItemJobExit); kind == events.ItemJobExit {
			return kind, nil
		}
	}
	return "", events.Errorf(events.CodeForbidden, "%s %q may not submit kind %q", c.Caller.Role, c.Caller.Name, kind)
}

// maySubmit refuses foreign names, and a gateway that reaches for a session in which
// nothing is its own. A peer needs the session's consent instead.
func (s *State) maySubmit(c Command, kind events.ItemKind) error {
	if kind == events.ItemPeer {
		if s.Policy.Peers || c.Caller.Role == events.RoleOperator {
			return nil
		}
		return events.Errorf(events.CodeForbidden, "session %s takes no messages of peers", s.Session)
	}
	if err := s.mayNameVia(c); err != nil {
		return err
	}
	if c.Caller.Role == events.RoleGateway && !s.owns(c.Caller.Name) {
		return s.forbidden(c)
	}
	return nil
}

// onReset gives the default; what is bound to its epoch never goes on to another.
func onReset(kind events.ItemKind, d events.Submit) events.OnReset {
	if slices.Contains(d.Bind, events.BindEpoch) {
		return events.OnResetDrop
	}
	switch kind {
	case events.ItemUser:
		return or(d.OnReset, events.OnResetCarry)
	case events.ItemSystem:
		return or(d.OnReset, events.OnResetDrop)
	}
	return events.OnResetDrop
}

// keyed returns the receipt for which the sender used its idempotency key before.
func (s *State) keyed(c Command, it events.Item) (r events.Receipt, ok bool, err error) {
	if it.IdempotencyKey == "" {
		return events.Receipt{}, false, nil
	}
	id, digest, ok := s.Queue.Keyed(it.Sender, it.IdempotencyKey, c.Now)
	if !ok {
		return events.Receipt{}, false, nil
	}
	if digest != it.BodyDigest {
		return events.Receipt{}, false, events.Errorf(events.CodeIdempotencyConflict,
			"idempotency key %q was used for another body", it.IdempotencyKey).With("receipt", string(id))
	}
	r, ok = s.Receipt(id)
	return r, ok, nil
}

func (s *State) room(it events.Item) error {
	if s.Queue.Kept() >= idle.MaxWaiting {
		return events.Errorf(events.CodeQueueFull, "%d items wait in session %s", s.Queue.Kept(), s.Session)
	}
	if s.Queue.KeptBytes()+idle.Size(it.Body) > idle.MaxWaitingBytes {
		return s.queueFull()
	}
	return nil
}
