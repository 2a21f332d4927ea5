package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"keryx/events"
	"keryx/internal/gateway/platform"
)

// inbox takes messages in for one tenure.
type inbox struct{ *tenure }

// Cursor implements platform.Inbox.
func (i *inbox) Cursor() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cursor
}

// Receive implements platform.Inbox. The error is that of the bus, or
// [platform.ErrNotServing].
func (i *inbox) Receive(ctx context.Context, m platform.Incoming) (platform.Taken, error) {
	switch {
	case m.Place.Chat == "" || m.Message == "":
		return platform.Taken{}, events.Errorf(events.CodeInvalid, "a message needs the ids of its chat and of itself")
	case !i.held.Valid():
		return platform.Taken{}, platform.ErrNotServing
	}
	echo, err := i.courier.echo(ctx, m)
	if err != nil || echo {
		return platform.Taken{Echo: echo}, err
	}
	if word, rest, _ := strings.Cut(strings.TrimSpace(m.Text), " "); word == "/link" && i.cfg.Links != nil {
		return platform.Taken{Command: true}, i.link(ctx, m, strings.TrimSpace(rest))
	}
	receipt, duplicate, err := i.submit(ctx, m)
	if err != nil {
		return platform.Taken{}, err
	}
	taken := platform.Taken{Session: receipt.Session, Receipt: receipt.ID, Duplicate: duplicate}
	return taken, i.received(ctx, m, receipt)
}

// submit puts a message into the session of its place, made now if there is none.
func (i *inbox) submit(ctx context.Context, m platform.Incoming) (events.Receipt, bool, error) {
	duplicate := i.taken(m)
	for again := false; ; again = true {
		session, err := i.session(ctx, m.Place, again)
		if err != nil {
			return events.Receipt{}, false, err
		}
		receipt, err := i.cfg.Conn.Submit(ctx, events.Submit{
			To: string(session), Body: events.Body{Text: m.Text, Data: m.Data},
			IdempotencyKey: i.origins.idempotency(m.Place, m.Message),
		})
		var e *events.Error
		switch {
		case err == nil:
			return receipt, duplicate, nil
		case errors.As(err, &e) && e.Code == events.CodeIdempotencyConflict && e.Details["receipt"] != "":
			// It reads otherwise now, and is the same message all the same.
			receipt, err := i.cfg.Conn.Receipt(ctx, events.ReceiptID(e.Details["receipt"]))
			return receipt, true, err
		case events.CodeOf(err) != events.CodeUnknownSession || again:
			return receipt, false, err
		}
	}
}

// taken reports whether a message is on record as received.
func (i *inbox) taken(m platform.Incoming) bool {
	i.courier.mu.Lock()
	defer i.courier.mu.Unlock()
	return i.courier.ledger.received.has(messageID{m.Place.Chat, m.Message})
}

// session is that of a place.
func (i *inbox) session(ctx context.Context, p events.Place, anew bool) (events.SessionID, error) {
	key := i.origins.key(p)
	i.mu.Lock()
	id, known := i.known[key]
	i.mu.Unlock()
	if known && !anew {
		return id, nil
	}
	reg, err := i.cfg.Conn.Register(ctx, events.Names{
		GatewaySessionKey: key, Source: i.origins.kind, Surface: "chat",
	}, i.cfg.Policy)
	if err != nil {
		return "", fmt.Errorf("register the session of %s: %w", key, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[key] = reg.Session
	return reg.Session, nil
}

// received puts a message on record, once.
func (i *inbox) received(ctx context.Context, m platform.Incoming, r events.Receipt) error {
	if i.taken(m) {
		return nil
	}
	d := events.GatewayReceived{
		Account: i.cfg.Name, Place: m.Place, Message: m.Message, Session: r.Session, Receipt: r.ID, Cursor: m.Cursor,
	}
	if err := i.record(ctx, events.RecordGateway{Received: &d}); err != nil {
		return err
	}
	i.courier.mu.Lock()
	i.courier.ledger.foldReceived(d)
	i.courier.mu.Unlock()
	if d.Cursor != "" {
		i.mu.Lock()
		i.cursor = d.Cursor
		i.mu.Unlock()
	}
	return nil
}

// Missed implements platform.Inbox.
func (i *inbox) Missed(ctx context.Context, gap platform.Gap) error {
	return i.record(ctx, events.RecordGateway{Dropped: &events.GatewayDropped{
		Account: i.cfg.Name, Place: gap.Place, Reason: reason(gap.Reason), GapFrom: gap.From.UTC(), GapTo: gap.To.UTC(),
	}})
}
