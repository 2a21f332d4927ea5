package lifecycle

import (
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
	if s.Finalized {
		draft := s.reopen(c)
		reg := draft.Data.(events.SessionRegistered)
		reg.Owner, reg.ForSubmit = s.Owner, true
		draft.Data = reg
		return step(draft)
	}
	it.Receipt = events.ReceiptID(c.Mint())
	return one(s.draft(events.TypeContinuationQueued, events.ContinuationQueued{Item: it}))
}

// item checks what is submitted and fills in what was left open.
func (s *State) item(c Command, d events.Submit) (events.Item, error) {
	kind, err := s.kind(c, d.Kind)
	if err != nil {
		return events.Item{}, err
	}
	if err := s.maySubmit(c); err != nil {
		return events.Item{}, err
	}
	if idle.Size(d.Body) > events.MaxBody {
		e := events.Errorf(events.CodeTooLarge, "a body has at most %d bytes", events.MaxBody)
		e.Path = "/body"
		return events.Item{}, e
	}
	mode, err := s.mode(d)
	if err != nil {
		return events.Item{}, err
	}
	return events.Item{
		Kind: kind, Mode: mode, Body: d.Body, Sender: c.Caller.Name,
		IdempotencyKey: d.IdempotencyKey, BodyDigest: idle.Digest(kind, d.Body),
		OnReset: onReset(kind, d.OnReset), Epoch: s.Epoch, QueuedAt: c.Now,
	}, nil
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
// nothing is its own.
func (s *State) maySubmit(c Command) error {
	if err := s.mayNameVia(c); err != nil {
		return err
	}
	if c.Caller.Role == events.RoleGateway && !s.owns(c.Caller.Name) {
		return s.forbidden(c)
	}
	return nil
}

// mode returns the asked mode or the first allowed downgrade that is supported.
func (s *State) mode(d events.Submit) (events.Mode, error) {
	var err error
	for _, m := range append([]events.Mode{or(d.Mode, events.ModeEnqueue)}, d.Allow...) {
		switch {
		case m == events.ModeEnqueue, m == events.ModeReject && s.running == "":
			return m, nil
		case m == events.ModeReject:
			err = events.Errorf(events.CodeBusy, "turn %s runs", s.running).With("turn", string(s.running))
		}
	}
	if err != nil {
		return "", err
	}
	e := events.Errorf(events.CodeUnsupported, "mode %q is not supported and no allowed downgrade is", d.Mode)
	e.Path = "/mode"
	return "", e
}

// onReset gives the default; what is bound to its epoch never goes on to another.
func onReset(kind events.ItemKind, asked events.OnReset) events.OnReset {
	switch kind {
	case events.ItemUser:
		return or(asked, events.OnResetCarry)
	case events.ItemSystem:
		return or(asked, events.OnResetDrop)
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
	if s.Queue.Pending() >= idle.MaxWaiting {
		return events.Errorf(events.CodeQueueFull, "%d items wait in session %s", s.Queue.Pending(), s.Session)
	}
	if s.Queue.PendingBytes()+idle.Size(it.Body) > idle.MaxWaitingBytes {
		return events.Errorf(events.CodeQueueFull, "what waits in session %s has %d bytes", s.Session, s.Queue.PendingBytes())
	}
	return nil
}
