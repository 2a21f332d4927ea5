package gateway

import (
	"context"
	"errors"
	"sync"

	"keryx/events"
)

// ErrNotDone says that a conversation came to its end, but not every line of it was
// done: a turn did not complete, a message was not taken, a command does not exist.
var ErrNotDone = errors.New("not everything was done")

// Conversation is a front that also brings lines in.
type Conversation interface {
	Front
	// Run does lines until there are no more, or ctx ends.
	Run(ctx context.Context, chat *Chat) error
}

// Hold opens a chat and has a conversation in it. It returns when the conversation has
// ended, with its error, or why the chat could not go on.
func Hold(ctx context.Context, cfg Config, conv Conversation) error {
	chat, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	followed := make(chan error, 1)
	go func() {
		err := chat.Run(ctx, conv)
		if err != nil {
			cancel(err) // ends the conversation as well
		}
		followed <- err
	}()
	err = conv.Run(ctx, chat)
	cancel(nil)
	if lost := <-followed; lost != nil {
		return lost
	}
	return err
}

// waitingTurn stands for the turn of an own message that has not started.
const waitingTurn events.TurnID = "waiting"

// busyWith returns the turn that [Chat.Stop] would interrupt now; "" for none.
func (c *Chat) busyWith() events.TurnID {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running != nil:
		return c.running.ID
	case c.own.awaitsTurn():
		return waitingTurn
	}
	return ""
}

// interrupts turns signals and keys into interrupts of a chat's turn. The zero value has
// no chat yet.
type interrupts struct {
	mu     sync.Mutex
	chat   *Chat
	ctx    context.Context
	failed func(error)
	last   events.TurnID
	work   sync.WaitGroup
}

// begin ties it to a chat until end.
func (i *interrupts) begin(ctx context.Context, chat *Chat, failed func(error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.chat, i.ctx, i.failed = chat, ctx, failed
}

// end joins what is under way; the context of begin must have ended.
func (i *interrupts) end() {
	i.mu.Lock()
	i.chat = nil
	i.mu.Unlock()
	i.work.Wait()
}

// Interrupt has the running turn interrupted, without waiting for it. It reports false
// when there is none, or when that was asked for before: then it is time to leave.
func (i *interrupts) Interrupt() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.chat == nil || i.ctx.Err() != nil {
		return false
	}
	turn := i.chat.busyWith()
	if turn == "" || turn == i.last {
		return false
	}
	i.last = turn
	chat, ctx, failed := i.chat, i.ctx, i.failed
	i.work.Go(func() {
		if _, err := chat.Stop(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
	return true
}
