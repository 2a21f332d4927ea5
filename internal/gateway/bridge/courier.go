package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/split"
)

// Bounds of sending.
const (
	// atOnce is how many sends of one account are under way at once.
	atOnce = 64
	// laneMost is how many sayings wait for one place; more are given up.
	laneMost = 1000
	// backoffMin and backoffMax bound the pause after a failure, which doubles.
	backoffMin = time.Second
	backoffMax = 5 * time.Minute
	// laterMost bounds a pause that a platform asks for.
	laterMost = 24 * time.Hour
)

// outside is what a courier works with.
type outside struct {
	send   func(context.Context, platform.Outgoing) (string, error)
	traits func() platform.Traits
	// record puts a fact on the account's record; an error means that this bridge no longer
	// speaks for the account.
	record func(context.Context, events.RecordGateway) error
	// valid reports whether it still does.
	valid   func() bool
	through func() events.Sequence
}

// courier says things, in order in each place, and holds up no place for another's sake.
type courier struct {
	outside
	account  events.AccountName
	sendTime time.Duration
	attempts int
	logger   *slog.Logger
	slots    chan struct{}

	mu     sync.Mutex
	ledger *ledger
	lanes  map[events.Place]*lane
	unsent map[events.Sequence]int
	ctx    context.Context
	work   sync.WaitGroup
}

// lane is one place's queue; its goroutine lives while it is not empty.
type lane struct {
	queue []saying
	// flight is the text under way; landed is closed when it is no longer.
	flight string
	landed chan struct{}
}

func newCourier(ctx context.Context, cfg Config, l *ledger, o outside) *courier {
	return &courier{
		outside: o, account: cfg.Name, sendTime: cfg.SendTime, attempts: cfg.Attempts, logger: cfg.Logger,
		slots: make(chan struct{}, atOnce), ledger: l, lanes: make(map[events.Place]*lane),
		unsent: make(map[events.Sequence]int), ctx: ctx,
	}
}

// say queues something for its place. What the ledger knows as done is not said again.
func (c *courier) say(s saying) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.at != 0 && s.at <= c.ledger.through {
		return
	}
	l := c.lanes[s.place]
	if l == nil {
		l = &lane{}
		c.lanes[s.place] = l
		c.work.Go(func() { c.drain(s.place, l) })
	}
	if s.at != 0 {
		c.unsent[s.at]++
	}
	l.queue = append(l.queue, s)
}

// oldest is where in the log the first saying was asked for that is not done; 0: all are.
func (c *courier) oldest() (seq events.Sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := range c.unsent {
		if seq == 0 || at < seq {
			seq = at
		}
	}
	return seq
}

func (c *courier) drain(place events.Place, l *lane) {
	for {
		c.mu.Lock()
		if len(l.queue) == 0 || c.ctx.Err() != nil {
			delete(c.lanes, place)
			c.mu.Unlock()
			return
		}
		s, waiting := l.queue[0], len(l.queue)
		l.queue = l.queue[1:]
		c.mu.Unlock()
		if err := c.deliver(l, s, waiting); err != nil {
			if c.ctx.Err() == nil {
				c.logger.Warn("say something", "send", s.id, "error", err)
			}
			continue // unsent: whoever speaks for the account next says it
		}
		c.done(s)
	}
}

func (c *courier) done(s saying) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.at == 0 {
		return
	}
	if c.unsent[s.at]--; c.unsent[s.at] <= 0 {
		delete(c.unsent, s.at)
	}
}

// deliver says all parts that were not said yet. An error means that it is not done.
func (c *courier) deliver(l *lane, s saying, waiting int) error {
	traits := c.traits()
	if traits.Mute {
		return nil
	}
	parts := split.Text(s.text, traits.Limit)
	for {
		c.mu.Lock()
		n := c.ledger.next(s.id, len(parts))
		attempt := c.ledger.attempts[partID{s.id, n}]
		c.mu.Unlock()
		switch {
		case n > len(parts):
			return nil
		case waiting > laneMost:
			return c.drop(s, n, fmt.Sprintf("%d others wait for this place", waiting))
		}
		p := platform.Outgoing{
			ID: fmt.Sprintf("%s.%d", s.id, n), Place: s.place, Text: parts[n-1].Text,
			Part: n, Parts: len(parts), Session: s.session,
		}
		if err := c.try(l, s, p, attempt); err != nil {
			return err
		}
	}
}

// try sends a part once, when its place may be spoken to, and records what came of it.
func (c *courier) try(l *lane, s saying, p platform.Outgoing, attempt int) error {
	if err := c.wait(s.place); err != nil {
		return err
	}
	message, err := c.launch(l, p)
	var later *platform.LaterError
	var final *platform.FinalError
	switch {
	case err == nil:
		return c.sent(s, p, message)
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case errors.Is(err, platform.ErrNotServing):
		return err
	case errors.As(err, &final):
		return c.drop(s, p.Part, err.Error())
	case errors.As(err, &later):
		return c.delay(s, p, attempt, min(max(later.After, time.Millisecond), laterMost), err)
	case attempt+1 >= c.attempts:
		return c.drop(s, p.Part, fmt.Sprintf("given up after %d tries: %v", attempt+1, err))
	}
	pause := min(backoffMin<<min(attempt, 20), backoffMax)
	return c.delay(s, p, attempt+1, pause/2+rand.N(pause/2), err)
}

// launch sends, with a slot, while the lease is held.
func (c *courier) launch(l *lane, p platform.Outgoing) (string, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.ctx.Done():
		return "", context.Cause(c.ctx)
	}
	if !c.valid() {
		return "", platform.ErrNotServing
	}
	c.mu.Lock()
	l.flight, l.landed = p.Text, make(chan struct{})
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, c.sendTime)
	defer cancel()
	message, err := c.send(ctx, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && message != "" { // before it is on record: its echo may be here
		c.ledger.own.add(messageID{p.Place.Chat, message})
	}
	l.flight = ""
	close(l.landed)
	return message, err
}

// wait returns when a place may be spoken to.
func (c *courier) wait(place events.Place) error {
	c.mu.Lock()
	until := c.ledger.delayed[place]
	c.mu.Unlock()
	if pause := time.Until(until); pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.ctx.Done():
		}
	}
	return context.Cause(c.ctx)
}

func (c *courier) sent(s saying, p platform.Outgoing, message string) error {
	d := events.GatewaySent{
		Account: c.account, Place: s.place, Send: s.id, Part: p.Part, Parts: p.Parts, Message: message,
		Session: s.session, At: s.at, Through: c.through(),
	}
	if err := c.record(c.ctx, events.RecordGateway{Sent: &d}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.foldSent(d)
	return nil
}

func (c *courier) delay(s saying, p platform.Outgoing, attempt int, pause time.Duration, why error) error {
	d := events.GatewayDelayed{
		Account: c.account, Place: s.place, Send: s.id, Part: p.Part, Parts: p.Parts, Session: s.session,
		Until: time.Now().Add(pause).UTC(), Attempt: attempt, Reason: reason(why.Error()),
	}
	c.mu.Lock() // in force whatever becomes of the record
	c.ledger.foldDelayed(d)
	c.mu.Unlock()
	return c.record(c.ctx, events.RecordGateway{Delayed: &d})
}

func (c *courier) drop(s saying, part int, why string) error {
	d := events.GatewayDropped{
		Account: c.account, Place: s.place, Send: s.id, Part: part, Session: s.session,
		Reason: reason(why), At: s.at, Through: c.through(),
	}
	c.logger.Warn("a reply is given up", "send", s.id, "part", part, "reason", why)
	if err := c.record(c.ctx, events.RecordGateway{Dropped: &d}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.foldDropped(d)
	return nil
}

// reasonMost bounds what is kept of a platform's words.
const reasonMost = 500

func reason(s string) string {
	if len(s) <= reasonMost {
		return s
	}
	return string([]rune(s)[:min(reasonMost, len([]rune(s)))])
}

// echo reports whether a message of the platform is one of the account's own. One that may
// be under way is waited for.
func (c *courier) echo(ctx context.Context, m platform.Incoming) (bool, error) {
	for {
		c.mu.Lock()
		own := m.Own || c.ledger.own.has(messageID{m.Place.Chat, m.Message})
		l := c.lanes[m.Place]
		var landed chan struct{}
		if l != nil && l.flight != "" && l.flight == m.Text {
			landed = l.landed
		}
		c.mu.Unlock()
		if own || landed == nil {
			return own, nil
		}
		select {
		case <-landed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
