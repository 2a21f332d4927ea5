package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Page is a part of a scope's record.
type Page struct {
	Records []events.Record
	// Holes are records that could not be decoded; they are in Records too, with only
	// their place, so that the order stays whole.
	Holes map[events.Sequence]error
	// Undecoded are the messages of Holes, as they are stored.
	Undecoded map[events.Sequence]*nats.Msg
	// Next is where to go on; 0 when the page reached the tip.
	Next events.Sequence
	// First is the oldest kept event at or after what was asked for.
	First events.Sequence
	Tip   events.Tip
}

// Page reads up to limit events (0: as many as one answer carries) of a scope from a
// sequence on (0: from the beginning).
func (c *Conn) Page(ctx context.Context, scope events.Scope, from events.Sequence, limit int) (Page, error) {
	p := Page{Holes: make(map[events.Sequence]error), Undecoded: make(map[events.Sequence]*nats.Msg)}
	subject := events.LogSubject(c.Principal().Profile, scope)
	stored, body, err := c.paged(ctx, events.CmdLogPage, events.LogPage{Scope: scope, From: from, Limit: limit})
	if err != nil {
		return Page{}, err
	}
	for _, m := range stored {
		rec, err := events.DecodeRecord(subject, m.seq, m.Header, m.Data)
		if err != nil {
			p.Holes[m.seq], p.Undecoded[m.seq] = err, m.Msg
		}
		p.Records = append(p.Records, rec)
	}
	var end events.LogPageEnd
	if err := json.Unmarshal(body, &end); err != nil {
		return Page{}, fmt.Errorf("decode the end of a page of %s: %w", scope, err)
	}
	p.Next, p.First, p.Tip = end.Next, end.First, end.Tip
	return p, nil
}

// knownWithin is how long the authority may take to know what was heard live already:
// the server publishes an event before the authority has seen it stored.
const knownWithin = 2 * time.Second

// pageOfKnown reads a page of a scope of which something was heard.
func (c *Conn) pageOfKnown(ctx context.Context, scope events.Scope, from events.Sequence) (Page, error) {
	deadline := time.Now().Add(knownWithin)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		page, err := c.Page(ctx, scope, from, 0)
		if !errors.Is(err, events.ErrOf(events.CodeUnknownSession)) || time.Now().After(deadline) || !sleep(ctx, pause) {
			return page, err
		}
	}
}

// stored is a message of a page.
type stored struct {
	*nats.Msg
	seq events.Sequence
}

// pageMessages is more than any page has.
const pageMessages = 2048

// paged runs a command whose answer is a page, and returns its messages and the body of
// its end. Each try has a reply subject of its own, so that no two answers mix.
func (c *Conn) paged(ctx context.Context, t events.Type, data any) (page []stored, end []byte, err error) {
	m, err := c.message(ctx, t, data)
	if err != nil {
		return nil, nil, err
	}
	end, err = c.persist(ctx, t, m, func(ctx context.Context, lost <-chan struct{}, refused <-chan error) ([]byte, error) {
		var body []byte
		page, body, err = c.pageOnce(ctx, m, lost, refused)
		return body, err
	})
	return page, end, err
}

func (c *Conn) pageOnce(ctx context.Context, m *nats.Msg, lost <-chan struct{}, refused <-chan error) ([]stored, []byte, error) {
	out := nats.NewMsg(m.Subject)
	out.Header, out.Data, out.Reply = m.Header, m.Data, c.nc.NewInbox()
	got := make(chan *nats.Msg, pageMessages)
	connection := c.nc.Stats().Reconnects
	sub, err := c.nc.ChanSubscribe(out.Reply, got)
	if err != nil {
		return nil, nil, c.sendError(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	if err := c.nc.PublishMsg(out); err != nil {
		return nil, nil, c.sendError(err)
	}
	var page []stored
	for {
		select {
		case a := <-got:
			if a.Header.Get(events.HeaderPage) == events.PageEnd || a.Header.Get("Status") != "" {
				if c.nc.Stats().Reconnects != connection {
					return nil, nil, errAgain // a message of the page may be lost
				}
				body, err := answerOf(a)
				return page, body, err
			}
			seq, err := strconv.ParseUint(a.Header.Get(events.HeaderSequence), 10, 64)
			if err != nil {
				return nil, nil, events.Errorf(events.CodeUndecodable, "a message of a page without %s", events.HeaderSequence)
			}
			if len(page) > 0 && events.Sequence(seq) <= page[len(page)-1].seq {
				continue // at a takeover two authorities may answer
			}
			page = append(page, stored{a, events.Sequence(seq)})
		case err := <-refused:
			return nil, nil, err
		case <-lost:
			return nil, nil, errAgain
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}
