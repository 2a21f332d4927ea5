package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
)

// Source reads the record; *client.Conn is one.
type Source interface {
	Page(ctx context.Context, scope events.Scope, from events.Sequence, limit int) (client.Page, error)
	Follow(ctx context.Context, cfg client.FollowConfig) iter.Seq2[events.Record, error]
}

// Query says what to show. The zero value of a field restricts nothing.
type Query struct {
	// From and To are the first and last ordinals wanted. To needs a single scope.
	From, To events.Ordinal
	// Types are globs on types, full or short; see [client.MatchType].
	Types []string
}

// Validate returns an error about a range that is empty or a glob that is malformed.
func (q Query) Validate() error {
	if q.To > 0 && q.From > q.To {
		return fmt.Errorf("the range %s to %s is empty", q.From, q.To)
	}
	for _, g := range q.Types {
		if _, err := path.Match(g, ""); err != nil {
			return fmt.Errorf("type %q: %w", g, err)
		}
	}
	return nil
}

func (q Query) past(r events.Record) bool { return q.To > 0 && r.Ordinal > q.To }

// Print writes the record of a scope as it is now and flushes w.
func Print(ctx context.Context, src Source, w *Writer, scope events.Scope, q Query) error {
	cur := follow.New(scope, 0)
	for {
		page, err := src.Page(ctx, scope, cur.Next(), 0)
		if err != nil {
			return errors.Join(fmt.Errorf("read the record of %s: %w", scope, err), w.Flush())
		}
		records, cut := cur.Page(page.Records, reached(page))
		past, err := w.page(records, cut, page.Holes, q)
		if err := errors.Join(err, w.Flush()); err != nil {
			return err
		}
		progress := cut != nil || len(records) > 0
		if past || page.Next == 0 && (!progress || !cur.Behind()) {
			return nil
		}
	}
}

// reached returns the tip if the page goes up to it.
func reached(p client.Page) events.Tip {
	if p.Next != 0 {
		return events.Tip{}
	}
	return p.Tip
}

// page writes what is wanted of a page, and reports whether it goes past the range.
func (w *Writer) page(records []events.Record, cut *follow.GapError, holes map[events.Sequence]error, q Query) (past bool, err error) {
	if cut != nil {
		if err := w.cut(cut, q); err != nil {
			return false, err
		}
	}
	for _, r := range records {
		if q.past(r) {
			return true, nil
		}
		if err := w.wanted(r, holes[r.Sequence], q); err != nil {
			return false, err
		}
	}
	return false, nil
}

// cut writes a gap as far as it lies in the wanted range.
func (w *Writer) cut(g *follow.GapError, q Query) error {
	from, to := max(g.From, q.From), g.To
	if q.To > 0 {
		to = min(to, q.To)
	}
	if from > to {
		return nil
	}
	return w.Gap(g.Scope, from, to)
}

// wanted writes r if q asks for it. A hole is shown whatever the types: nobody knows
// which it is of.
func (w *Writer) wanted(r events.Record, hole error, q Query) error {
	switch {
	case r.Ordinal < q.From:
		w.Heard(r)
		return nil
	case hole != nil:
		return w.Hole(r, hole)
	case !client.MatchType(q.Types, r.Type):
		w.Heard(r)
		return nil
	}
	return w.Record(r)
}

// FollowConfig says what [Tail] follows.
type FollowConfig struct {
	Query
	// Scopes to follow; none for the whole profile.
	Scopes []events.Scope
	// FromTip leaves out what is there already.
	FromTip bool
}

// Tail writes events as they come, flushing each, until ctx ends or the range is past.
// The end of ctx is no error.
func Tail(ctx context.Context, src Source, w *Writer, cfg FollowConfig) error {
	for r, err := range src.Follow(ctx, client.FollowConfig{Scopes: cfg.Scopes, FromTip: cfg.FromTip}) {
		if err == nil && cfg.past(r) {
			break
		}
		if err := errors.Join(w.followed(r, err, cfg.Query), w.Flush()); err != nil {
			return err
		}
		if cfg.To > 0 && r.Ordinal == cfg.To {
			break
		}
	}
	return nil
}

func (w *Writer) followed(r events.Record, err error, q Query) error {
	var g *follow.GapError
	var h *client.HoleError
	switch {
	case errors.As(err, &g):
		return w.cut(g, q)
	case errors.As(err, &h):
		return w.wanted(r, h.Err, q)
	case err != nil:
		return fmt.Errorf("follow: %w", err)
	}
	return w.wanted(r, nil, q)
}
