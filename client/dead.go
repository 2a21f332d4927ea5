package client

import (
	"context"
	"encoding/json"

	"keryx/events"
)

// DeadLetters returns a page of the profile's refused input, oldest first. Operators only.
func (c *Conn) DeadLetters(ctx context.Context, q events.DeadList) (events.DeadLetters, error) {
	return ask[events.DeadLetters](ctx, c, events.CmdDeadList, q)
}

// DeadLetter returns refused input; the error has code unknown_letter if it is not kept
// any more. Operators only.
func (c *Conn) DeadLetter(ctx context.Context, seq events.Sequence) (events.DeadLetter, error) {
	return ask[events.DeadLetter](ctx, c, events.CmdDeadShow, events.DeadShow{Sequence: seq})
}

// DropDead removes dead letters for good and returns how many were there, at most 1,000 at
// once. Operators only.
func (c *Conn) DropDead(ctx context.Context, seqs ...events.Sequence) (int, error) {
	a, err := ask[events.DeadDropped](ctx, c, events.CmdDeadDrop, events.DeadDrop{Sequences: seqs})
	return a.Dropped, err
}

// Replay sends data as a command of this principal, in its own name and with its own
// rights, whoever sent it before, and returns the answer's body.
func (c *Conn) Replay(ctx context.Context, t events.Type, data json.RawMessage) (json.RawMessage, error) {
	var answer json.RawMessage
	err := c.Do(ctx, t, data, &answer)
	return answer, err
}
