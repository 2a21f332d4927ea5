package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"keryx/events"
	"keryx/internal/termtext"
)

// Send submits a message and returns once the bus has it. It outlasts a bus that is
// away, for as long as ctx allows. The error is *[events.Error] for a refusal.
func (c *Chat) Send(ctx context.Context, text string) error {
	c.mu.Lock()
	m := c.own.open()
	c.mu.Unlock()
	r, err := c.submit(ctx, events.Submit{
		To: string(c.session), Body: events.Body{Text: text}, Kind: events.ItemUser, IdempotencyKey: m.key,
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changedLocked()
	if err != nil {
		c.own.refused(m)
		return err
	}
	c.own.known(m.key, r.ID)
	return nil
}

// submit tries again after a timeout: the idempotency key makes it the same message.
func (c *Chat) submit(ctx context.Context, s events.Submit) (events.Receipt, error) {
	for {
		r, err := c.conn.Submit(ctx, s)
		if err == nil || ctx.Err() != nil || !errors.Is(err, events.ErrOf(events.CodeTimeout)) {
			return r, err
		}
		c.cfg.Logger.Warn("the bus does not answer; the message is sent again", "error", err)
	}
}

// Settled waits until at most n own messages are not settled. It returns an error when
// Run has ended before that, or ctx.
func (c *Chat) Settled(ctx context.Context, n int) error {
	return c.await(ctx, func() bool { return c.own.waiting() <= n })
}

// Tally returns what became of the own messages so far.
func (c *Chat) Tally() Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own.tally
}

// Reset ends the session's epoch and opens the next; a running turn is interrupted.
func (c *Chat) Reset(ctx context.Context) (events.EpochAnswer, error) {
	return c.conn.Reset(ctx, string(c.session), "/new")
}

// Stop interrupts the running turn and returns once it has ended. When none runs and an
// own message waits, that message's turn is interrupted as soon as it starts. It
// reports whether there was anything to interrupt.
func (c *Chat) Stop(ctx context.Context) (bool, error) {
	c.mu.Lock()
	turn := c.running
	if turn == nil && c.own.awaitsTurn() {
		c.stop = true
		c.mu.Unlock()
		return true, nil
	}
	c.mu.Unlock()
	if turn == nil {
		return false, nil
	}
	return true, c.interrupt(ctx, turn.ID)
}

func (c *Chat) interrupt(ctx context.Context, turn events.TurnID) error {
	_, err := c.conn.Interrupt(ctx, string(c.session), turn, "/stop")
	if err != nil {
		return fmt.Errorf("interrupt the turn: %w", err)
	}
	return nil
}

// Status returns the session's state in a few lines.
func (c *Chat) Status(ctx context.Context) (string, error) {
	v, err := c.conn.Show(ctx, string(c.session))
	if err != nil {
		return "", fmt.Errorf("read the session's state: %w", err)
	}
	var b strings.Builder
	row := func(what, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", what, termtext.Visible(value))
		}
	}
	row("session", string(v.Session))
	row("keys", strings.Join(v.Keys, ", "))
	row("epoch", v.Epoch.String())
	row("status", string(v.Status))
	row("host", string(v.Host))
	if v.Running != nil {
		row("running", time.Since(v.Running.StartedAt).Round(time.Second).String())
	}
	row("turns", fmt.Sprint(v.Turns))
	row("waiting", fmt.Sprint(v.Pending))
	row("for", v.WaitingFor)
	return b.String(), nil
}
