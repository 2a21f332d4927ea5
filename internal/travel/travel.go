package travel

import (
	"context"
	"fmt"
	"time"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
	"keryx/internal/lifecycle"
)

// Source reads the record; *client.Conn is one.
type Source interface {
	Page(ctx context.Context, scope events.Scope, from events.Sequence, limit int) (client.Page, error)
}

// Point is a session as it was.
type Point struct {
	State *lifecycle.State
	// Time is when the last event before the moment happened.
	Time time.Time
	// Holes is how many events before the moment could not be decoded; the state is as if
	// they had not happened.
	Holes int
}

// To folds the record of a scope, which is a session's, up to m. A moment before what is
// kept, and an ordinal or sequence behind the newest, are *[events.Error] with code
// invalid.
func To(ctx context.Context, src Source, profile events.Profile, scope events.Scope, m Moment) (Point, error) {
	p := Point{State: &lifecycle.State{Identity: lifecycle.Identity{Profile: profile, Session: scope.Session()}}}
	var first events.Record
	seen, tip, err := Walk(ctx, src, scope, func(r events.Record, hole error) bool {
		if first.Sequence == 0 {
			first = r
		}
		if m.Before(r) {
			return false
		}
		if hole != nil {
			p.Holes++
		}
		r.Scope = p.State.Session.Scope() // of an imported record it is another
		// Its error says that the event is a hole, for the fold as well.
		if err := lifecycle.Fold(p.State, r); err != nil && hole == nil {
			p.Holes++
		}
		return true
	})
	if err != nil {
		return p, err
	}
	p.Time = p.State.LastTime
	return p, check(scope, m, first, tip, seen, p.State)
}

// check refuses a moment at which there is no state to show.
func check(scope events.Scope, m Moment, first events.Record, tip events.Tip, seen bool, s *lifecycle.State) error {
	switch {
	case !seen:
		return events.Errorf(events.CodeUnknownSession, "the record of %s is empty", scope)
	case m.Ordinal > tip.Ordinal || m.Sequence > tip.Sequence && m.Ordinal == 0:
		return events.Errorf(events.CodeInvalid, "%s is not there yet: the record of %s ends at ordinal %s, sequence %s",
			m, scope, tip.Ordinal, tip.Sequence)
	case s.LastSequence == 0 && first.Ordinal > 1:
		return events.Errorf(events.CodeInvalid, "%s is no longer kept: the record of %s begins at ordinal %s, sequence %s",
			m, scope, first.Ordinal, first.Sequence)
	case s.LastSequence == 0:
		return events.Errorf(events.CodeInvalid, "at %s there was nothing: the record of %s begins at ordinal %s, sequence %s, %s",
			m, scope, first.Ordinal, first.Sequence, first.Time.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// Walk calls fn with each event of a scope from the oldest kept one on, until fn returns
// false or the record ends. hole says why an event could not be decoded; it then has only
// its place. seen is false for an empty record.
func Walk(ctx context.Context, src Source, scope events.Scope, fn func(r events.Record, hole error) bool) (seen bool, tip events.Tip, err error) {
	cur := follow.New(scope, 0)
	for {
		page, err := src.Page(ctx, scope, cur.Next(), 0)
		if err != nil {
			return seen, tip, fmt.Errorf("read the record of %s: %w", scope, err)
		}
		tip = page.Tip
		records, cut := cur.Page(page.Records, endOf(page))
		for _, r := range records {
			seen = true
			if !fn(r, page.Holes[r.Sequence]) {
				return seen, tip, nil
			}
		}
		if progress := cut != nil || len(records) > 0; page.Next == 0 && (!progress || !cur.Behind()) {
			return seen, tip, nil
		}
	}
}

// endOf returns the tip if the page goes up to it.
func endOf(p client.Page) events.Tip {
	if p.Next != 0 {
		return events.Tip{}
	}
	return p.Tip
}
