package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Page is a part of a scope's record.
type Page struct {
	Records []events.Record
	// Holes are records that could not be decoded; they are in Records too, with only
	// their place, so that the order stays whole.
	Holes map[events.Sequence]error
	// Next is where to go on; 0 when the page reached the tip.
	Next events.Sequence
	// First is the oldest kept event at or after what was asked for.
	First events.Sequence
	Tip   events.Tip
}

// Page reads up to limit events (0: as many as one answer carries) of a scope from a
// sequence on (0: from the beginning).
func (c *Conn) Page(ctx context.Context, scope events.Scope, from events.Sequence, limit int) (Page, error) {
	var page Page
	subject := events.LogSubject(c.Principal().Profile, scope)
	body, err := c.paged(ctx, events.CmdLogPage, events.LogPage{Scope: scope, From: from, Limit: limit},
		func() { page = Page{Holes: make(map[events.Sequence]error)} },
		func(seq events.Sequence, m *nats.Msg) {
			rec, err := events.DecodeRecord(subject, seq, m.Header, m.Data)
			if err != nil {
				page.Holes[seq] = err
			}
			page.Records = append(page.Records, rec)
		})
	if err != nil {
		return Page{}, err
	}
	var end events.LogPageEnd
	if err := json.Unmarshal(body, &end); err != nil {
		return Page{}, fmt.Errorf("decode the end of a page of %s: %w", scope, err)
	}
	page.Next, page.First, page.Tip = end.Next, end.First, end.Tip
	return page, nil
}

// paged runs a command whose answer is a page: reset is called before each try, take
// for each message, and the end's body is returned.
func (c *Conn) paged(ctx context.Context, t events.Type, data any, reset func(), take func(events.Sequence, *nats.Msg)) ([]byte, error) {
	return c.request(ctx, t, data, func(ctx context.Context, m *nats.Msg, again <-chan struct{}) ([]byte, error) {
		reset()
		return c.pageOnce(ctx, m, again, take)
	})
}

func (c *Conn) pageOnce(ctx context.Context, m *nats.Msg, again <-chan struct{}, take func(events.Sequence, *nats.Msg)) ([]byte, error) {
	reply := c.nc.NewInbox()
	got := make(chan *nats.Msg, 8192) // more than one page has messages
	sub, err := c.nc.ChanSubscribe(reply, got)
	if err != nil {
		return nil, c.publishError(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	out := nats.NewMsg(m.Subject)
	out.Header, out.Data, out.Reply = m.Header, m.Data, reply
	if err := c.nc.PublishMsg(out); err != nil {
		return nil, c.publishError(err)
	}
	for {
		select {
		case a := <-got:
			if a.Header.Get(events.HeaderPage) == events.PageEnd || a.Header.Get("Status") != "" {
				return answerOf(a)
			}
			seq, err := strconv.ParseUint(a.Header.Get(events.HeaderSequence), 10, 64)
			if err != nil {
				return nil, errors.New("a message of a page without a sequence")
			}
			take(events.Sequence(seq), a)
		case <-again:
			return nil, errAgain
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
