package client

import (
	"context"
	"encoding/json"
	"fmt"

	"keryx/events"
)

// KeptOutput calls fn with what is stored of an exec's output now, in order, and says
// what is missing as [Conn.Output] does, as far as the exec has ended. Unlike that it
// waits for nothing, and reads imported records too: scope is a session's, or that of its
// imported record.
func (c *Conn) KeptOutput(ctx context.Context, scope events.Scope, exec events.ExecID, fn func(Chunk)) error {
	end, err := c.storedEnd(ctx, scope, exec)
	if err != nil {
		return err
	}
	reel := newReel(fn)
	q := events.Output{Session: scope.Session(), Exec: exec, Imported: scope.Imported()}
	for {
		page, body, err := c.paged(ctx, events.CmdExecOutput, q)
		if err != nil {
			return err
		}
		for _, m := range page {
			if chunk, err := chunkOf(m.Msg); err == nil { // else it shows as missing
				reel.take(chunk)
			}
		}
		var at events.OutputPage
		if err := json.Unmarshal(body, &at); err != nil {
			return fmt.Errorf("decode the end of a page of output: %w", err)
		}
		if q.From = at.Next; q.From == 0 {
			reel.finish(end.exited.Streams)
			return nil
		}
	}
}

// storedEnd looks for an exec in a record, and for its end.
func (c *Conn) storedEnd(ctx context.Context, scope events.Scope, exec events.ExecID) (execEnd, error) {
	known := false
	for from := events.Sequence(0); ; {
		page, err := c.Page(ctx, scope, from, 0)
		if err != nil {
			return execEnd{}, err
		}
		for _, rec := range page.Records {
			if d, err := events.DataOf[events.ExecRequested](rec); err == nil && rec.Type == events.TypeExecRequested && d.Exec == exec {
				known = true
			}
			if end := endOfExec(rec, exec); end.seen {
				return end, nil
			}
		}
		if from = page.Next; from == 0 && !known {
			return execEnd{}, events.Errorf(events.CodeUnknownExec, "the record of %s has no exec %q", scope, exec)
		}
		if from == 0 {
			return execEnd{}, nil
		}
	}
}
