package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"time"

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
	// Since and Until are the first time wanted and the first not wanted any more: what
	// happened at exactly Since is shown, at exactly Until not. Until needs a single scope.
	// What cannot be decoded has the time of what was before it.
	Since, Until time.Time
	// Types are globs on types, full or short; see [client.MatchType].
	Types []string
	// Pace spreads what is shown over time; nil shows all at once.
	Pace *Pace
}

// Validate returns an error about a range that is empty or a glob that is malformed.
func (q Query) Validate() error {
	if q.To > 0 && q.From > q.To {
		return fmt.Errorf("the range %s to %s is empty", q.From, q.To)
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return fmt.Errorf("the time from %s until before %s is empty", q.Since.Format(time.RFC3339Nano), q.Until.Format(time.RFC3339Nano))
	}
	if q.Pace != nil {
		if err := q.Pace.Validate(); err != nil {
			return err
		}
	}
	for _, g := range q.Types {
		if _, err := path.Match(g, ""); err != nil {
			return fmt.Errorf("type %q: %w", g, err)
		}
	}
	return nil
}

// past reports whether r and all behind it are no longer wanted: within a scope times
// never go back.
func (q Query) past(r events.Record) bool {
	return q.To > 0 && r.Ordinal > q.To || !q.Until.IsZero() && !r.Time.Before(q.Until)
}

// Wants reports whether r is asked for.
func (q Query) Wants(r events.Record) bool {
	return !q.past(r) && !q.early(r) && client.MatchType(q.Types, r.Type)
}

// early reports whether r is before what is wanted.
func (q Query) early(r events.Record) bool {
	return r.Ordinal < q.From || r.Time.Before(q.Since)
}

// Print writes the record of a scope as it is now and flushes w.
func Print(ctx context.Context, src Source, w *Writer, scope events.Scope, q Query) error {
	cur := follow.New(scope, 0)
	for {
		page, err := src.Page(ctx, scope, cur.Next(), 0)
		if err != nil {
			return errors.Join(fmt.Errorf("read the record of %s: %w", scope, err), w.Flush())
		}
		records, cut := cur.Page(page.Records, reached(page))
		past, err := w.page(ctx, records, cut, page.Holes, q)
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
func (w *Writer) page(ctx context.Context, records []events.Record, cut *follow.GapError, holes map[events.Sequence]error, q Query) (past bool, err error) {
	if cut != nil {
		if err := w.cut(cut, q); err != nil {
			return false, err
		}
	}
	for _, r := range records {
		r = w.timed(r)
		if q.past(r) {
			return true, nil
		}
		if err := w.wanted(ctx, r, holes[r.Sequence], q); err != nil {
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

// timed gives what could not be decoded the time of what was before it.
func (w *Writer) timed(r events.Record) events.Record {
	if r.Time.IsZero() {
		r.Time = w.heard
	}
	w.heard = r.Time
	return r
}

// wanted writes r if q asks for it. A hole is shown whatever the types: nobody knows
// which it is of.
func (w *Writer) wanted(ctx context.Context, r events.Record, hole error, q Query) error {
	if q.early(r) || hole == nil && !client.MatchType(q.Types, r.Type) {
		w.Heard(r)
		return nil
	}
	if err := w.pause(ctx, q.Pace, r); err != nil {
		return err
	}
	if hole != nil {
		return w.Hole(r, hole)
	}
	return w.Record(r)
}

// pause shows what was written before it lets the time pass that is between two events.
func (w *Writer) pause(ctx context.Context, p *Pace, r events.Record) error {
	if p == nil {
		return nil
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return p.wait(ctx, r.Time)
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
		if err == nil {
			r = w.timed(r)
		}
		if err == nil && cfg.past(r) {
			break
		}
		if err := errors.Join(w.followed(ctx, r, err, cfg.Query), w.Flush()); err != nil {
			return err
		}
		if cfg.To > 0 && r.Ordinal == cfg.To {
			break
		}
	}
	return nil
}

func (w *Writer) followed(ctx context.Context, r events.Record, err error, q Query) error {
	var g *follow.GapError
	var h *client.HoleError
	switch {
	case errors.As(err, &g):
		return w.cut(g, q)
	case errors.As(err, &h):
		return w.wanted(ctx, w.timed(r), h.Err, q)
	case err != nil:
		return fmt.Errorf("follow: %w", err)
	}
	return w.wanted(ctx, r, nil, q)
}
