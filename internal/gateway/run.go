package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
)

// Times of a chat.
const (
	stateEvery = time.Second
	// hostWithin is how long a message may wait for a host before the person is told.
	hostWithin = 3 * time.Second
	// partsBuffer is how many reply pieces may wait; more are dropped and come with the
	// whole reply.
	partsBuffer = 4096
)

// errEnded is the cause for those who wait when Run has ended.
var errEnded = errors.New("the chat has ended")

// followed is what the follower yields.
type followed struct {
	rec events.Record
	err error
}

// Run follows the session and tells front, until ctx ends; it returns nil then. It
// returns an error when the session cannot be followed any more. Call it once.
func (c *Chat) Run(ctx context.Context, front Front) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := make(chan *nats.Msg, partsBuffer)
	p := c.conn.Principal()
	sub, err := c.conn.NATS().ChanSubscribe(events.PartAll(p.Profile, c.session), parts)
	if err != nil {
		return c.over(fmt.Errorf("chat: subscribe to replies: %w", err))
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	records := make(chan followed)
	var work sync.WaitGroup
	work.Go(func() { c.follow(ctx, records) })
	work.Go(func() { c.watchSetups(ctx) })
	r := &runner{Chat: c, front: front, work: &work}
	r.resume()
	err = r.loop(ctx, records, parts)
	cancel()
	work.Wait()
	return c.over(err)
}

// over wakes those who wait for what will not come any more.
func (c *Chat) over(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = errEnded
	if err != nil {
		c.ended = err
	}
	c.changedLocked()
	return err
}

func (c *Chat) follow(ctx context.Context, out chan<- followed) {
	defer close(out)
	cfg := client.FollowConfig{Scopes: []events.Scope{c.session.Scope()}, From: c.from}
	for rec, err := range c.conn.Follow(ctx, cfg) {
		select {
		case out <- followed{rec, err}:
		case <-ctx.Done():
			return
		}
	}
}

// runner is what belongs to one Run and its goroutine.
type runner struct {
	*Chat
	front  Front
	work   *sync.WaitGroup
	pieces pieces

	state        State
	waitingSince time.Time // since when a message waits without a host
	noticed      bool      // the person was told
}

// resume tells of the turn that ran already when the chat was opened.
func (r *runner) resume() {
	r.mu.Lock()
	turn := r.running
	r.mu.Unlock()
	if turn != nil {
		r.pieces = pieces{turn: turn.ID, broken: true} // its beginning was missed
		r.front.Started(*turn)
	}
	r.tellState()
}

func (r *runner) loop(ctx context.Context, records <-chan followed, parts <-chan *nats.Msg) error {
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	for {
		select {
		case f, ok := <-records:
			switch {
			case ctx.Err() != nil:
				return nil
			case !ok:
				return errors.New("chat: the session is no longer followed")
			}
			if err := r.take(ctx, f); err != nil {
				return err
			}
		case m := <-parts:
			r.part(m)
			continue // pieces change no state
		case text := <-r.said:
			r.front.Notice(text)
			continue
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		r.tellState()
	}
}

// take folds one event. Where the record is not whole, the receipts tell the rest.
func (r *runner) take(ctx context.Context, f followed) error {
	var hole *client.HoleError
	var gap *follow.GapError
	switch {
	case errors.As(f.err, &hole), errors.As(f.err, &gap):
		r.front.Notice("the record is not whole: " + f.err.Error())
		return r.recheck(ctx)
	case f.err != nil:
		return fmt.Errorf("chat: %w", f.err)
	}
	if err := r.fold(ctx, f.rec); err != nil {
		r.front.Notice(err.Error())
		return r.recheck(ctx)
	}
	return nil
}

func (r *runner) part(m *nats.Msg) {
	text := r.pieces.add(m)
	r.mu.Lock()
	turn := r.running
	r.mu.Unlock()
	if text != "" && turn != nil {
		r.front.Piece(*turn, text)
	}
}

// recheck asks for each own message how it stands.
func (r *runner) recheck(ctx context.Context) error {
	r.mu.Lock()
	ids := r.own.receipts()
	r.mu.Unlock()
	for _, id := range ids {
		receipt, err := r.conn.Receipt(ctx, id)
		if err != nil {
			return fmt.Errorf("chat: ask for receipt %s: %w", id, err)
		}
		switch receipt.State {
		case events.StateQueued, events.StateOffered, events.StateAccepted:
			continue
		case events.StateSettled:
		default:
			r.undelivered([]events.ReceiptID{id}, string(receipt.State)+" "+receipt.Reason)
			continue
		}
		turn, err := r.conn.Turn(ctx, receipt.Turn)
		if err != nil && !errors.Is(err, events.ErrOf(events.CodeUnknownTurn)) {
			return fmt.Errorf("chat: ask for turn %s: %w", receipt.Turn, err)
		}
		r.finish(turn.Turn, []events.ReceiptID{id}, Ended{Outcome: receipt.Outcome, Reply: turn.Reply, Error: turn.Error})
	}
	return nil
}
