package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"keryx/events"
)

// Import brings the exported record of a session into the bus, which checks it line by
// line: what is damaged is refused with code invalid and changes nothing. session and
// content are those of the file's header. taken, which may be nil, is called with how many
// bytes the bus has taken. A record that was imported before is returned as it is; another
// one of the same session is refused with already_imported.
func (c *Conn) Import(ctx context.Context, session events.SessionID, content string, file io.Reader, taken func(int64)) (events.SessionImported, error) {
	begun, err := ask[events.ImportState](ctx, c, events.CmdImportBegin, events.BeginImport{Session: session, Content: content})
	if err != nil || begun.Done != nil {
		return or(begun.Done), err
	}
	piece := make([]byte, events.MaxImportPiece)
	for offset := int64(0); ; {
		n, err := io.ReadFull(file, piece)
		if n > 0 {
			at, err := ask[events.ImportState](ctx, c, events.CmdImportPut, events.PutImport{Import: begun.Import, Offset: offset, Data: piece[:n]})
			if err != nil {
				return events.SessionImported{}, err
			}
			if offset = at.Offset; taken != nil {
				taken(offset)
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return ask[events.SessionImported](ctx, c, events.CmdImportEnd, events.EndImport{Import: begun.Import})
		case err != nil:
			return events.SessionImported{}, fmt.Errorf("read export: %w", err)
		}
	}
}

func or[T any](p *T) (out T) {
	if p != nil {
		out = *p
	}
	return out
}

// Imports yields the imported sessions of the profile in order of their ids. The sequence
// ends after the first error.
func (c *Conn) Imports(ctx context.Context) iter.Seq2[events.SessionImported, error] {
	return func(yield func(events.SessionImported, error) bool) {
		for q := (events.ImportList{}); ; {
			page, err := ask[events.Imports](ctx, c, events.CmdImportList, q)
			if err != nil {
				yield(events.SessionImported{}, err)
				return
			}
			for _, f := range page.Imports {
				if !yield(f, nil) {
					return
				}
				q.After = f.Session
			}
			if !page.More {
				return
			}
		}
	}
}

// Find tells which session a receipt, a turn, an exec, or a session's id or name belongs to.
func (c *Conn) Find(ctx context.Context, id string) (events.FoundSession, error) {
	return ask[events.FoundSession](ctx, c, events.CmdSessionFind, events.FindSession{ID: id})
}
