// Package follow puts the events of one scope in order: a [Cursor] takes live messages,
// pages and tips as they come, with losses, repeats and overlaps, and hands out each
// event once, by ordinal.
//
// It is pure: no I/O, no clock, no goroutine. A Cursor is not safe for concurrent use.
// Its memory is bounded: it keeps at most [MaxAhead] events that came early and drops
// the rest, to be fetched again.
package follow

import (
	"fmt"
	"slices"

	"keryx/events"
)

// MaxAhead is how many events a cursor keeps that came before their turn.
const MaxAhead = 512

// GapError says that events of a scope are not kept any more.
type GapError struct {
	Scope events.Scope
	// From and To are the first and last missing ordinals.
	From, To events.Ordinal
}

// Error implements error.
func (e *GapError) Error() string {
	return fmt.Sprintf("scope %s: events %d to %d are no longer kept", e.Scope, e.From, e.To)
}

// Cursor is how far a follower has come in one scope. Make it with [New] or [At].
type Cursor struct {
	scope events.Scope
	// begin drops events before it; 0 for none.
	begin events.Sequence
	// last is what was handed out last; ordinal 0 when nothing was.
	last  events.Tip
	tip   events.Tip // the highest known to exist
	ahead map[events.Ordinal]events.Record
	fresh bool // the ordinal of the first event to hand out is not known yet
}

// New returns a cursor that begins at a sequence; 0 is the beginning of the scope.
func New(scope events.Scope, from events.Sequence) *Cursor {
	return &Cursor{scope: scope, begin: from, fresh: from > 1, ahead: make(map[events.Ordinal]events.Record)}
}

// At returns a cursor that has everything up to a tip.
func At(tip events.Tip) *Cursor {
	return &Cursor{scope: tip.Scope, last: tip, tip: tip, ahead: make(map[events.Ordinal]events.Record)}
}

// Last returns what was handed out last.
func (c *Cursor) Last() events.Tip { return c.last }

// Behind reports whether events are known to exist that were not handed out, so that a
// page must be fetched from [Cursor.Next].
func (c *Cursor) Behind() bool { return c.tip.Ordinal > c.last.Ordinal && c.tip.Sequence >= c.begin }

// Next is the sequence from which to fetch.
func (c *Cursor) Next() events.Sequence { return max(c.begin, c.last.Sequence+1) }

// Live takes a live event and returns what can be handed out now.
func (c *Cursor) Live(r events.Record) []events.Record {
	c.note(events.Tip{Scope: c.scope, Sequence: r.Sequence, Ordinal: r.Ordinal})
	if r.Ordinal <= c.last.Ordinal || r.Sequence < c.begin {
		return nil
	}
	if r.Ordinal != c.last.Ordinal+1 {
		if len(c.ahead) < MaxAhead {
			c.ahead[r.Ordinal] = r
		}
		return nil
	}
	return c.drain([]events.Record{c.take(r)})
}

// Tip takes a scope's tip as the bus told it.
func (c *Cursor) Tip(t events.Tip) { c.note(t) }

func (c *Cursor) note(t events.Tip) {
	if t.Ordinal > c.tip.Ordinal {
		c.tip = t
	}
}

// Page takes a page fetched from [Cursor.Next], in its order. end is the scope's tip as
// told with the page if the page reached it, else zero. Page returns what can be handed
// out and, before that, the gap that the page proves, if any. Behind a second gap it
// takes nothing: the cursor is still [Cursor.Behind], and the next page begins there.
//
// A record whose ordinal cannot be read is handed out in its place, with the ordinal
// that its neighbours or the tip tell; 0 if nothing does.
func (c *Cursor) Page(page []events.Record, end events.Tip) ([]events.Record, *GapError) {
	var out []events.Record
	var gap *GapError
	for _, r := range numbered(page, end) {
		if r.Sequence <= c.last.Sequence || r.Sequence < c.begin {
			continue // handed out while the page was on its way
		}
		c.note(events.Tip{Scope: c.scope, Sequence: r.Sequence, Ordinal: r.Ordinal})
		if r.Ordinal == 0 && c.fresh {
			c.last.Sequence = r.Sequence
			out = append(out, r)
			continue
		}
		if r.Ordinal == 0 {
			r.Ordinal = c.last.Ordinal + 1
		}
		if r.Ordinal > c.last.Ordinal+1 && !c.fresh {
			if len(out) > 0 {
				return out, gap
			}
			gap = c.missing(r.Ordinal - 1)
		}
		out = append(out, c.take(r))
	}
	c.note(end)
	if len(out) == 0 || c.fresh {
		gap = c.settle(end)
	}
	return c.drain(out), gap
}

// numbered fills in ordinals that could not be read from those behind them: ordinals are
// dense.
func numbered(page []events.Record, end events.Tip) []events.Record {
	if !slices.ContainsFunc(page, func(r events.Record) bool { return r.Ordinal == 0 }) {
		return page
	}
	page = slices.Clone(page)
	behind := events.Ordinal(0)
	for i := len(page) - 1; i >= 0; i-- {
		r := &page[i]
		switch {
		case r.Ordinal != 0:
		case r.Sequence == end.Sequence:
			r.Ordinal = end.Ordinal
		case behind > 1:
			r.Ordinal = behind - 1
		}
		behind = r.Ordinal
	}
	return page
}

func (c *Cursor) missing(to events.Ordinal) *GapError {
	return &GapError{Scope: c.scope, From: c.last.Ordinal + 1, To: to}
}

// settle compares what was handed out with the tip that a page without anything new has
// reached: what is missing up to there is not kept.
func (c *Cursor) settle(end events.Tip) *GapError {
	switch {
	case end.Ordinal <= c.last.Ordinal || end.Sequence < c.begin:
		return nil
	case c.fresh && c.last.Sequence != end.Sequence:
		return nil // it says nothing about which ordinal was handed out last
	case c.fresh:
		c.fresh, c.last = false, end
		return nil
	}
	gap := c.missing(end.Ordinal)
	c.last = end
	return gap
}

func (c *Cursor) take(r events.Record) events.Record {
	c.fresh = false
	c.last = events.Tip{Scope: c.scope, Sequence: r.Sequence, Ordinal: r.Ordinal}
	delete(c.ahead, r.Ordinal)
	return r
}

// drain appends the early events whose turn has come, and forgets those that are past.
func (c *Cursor) drain(out []events.Record) []events.Record {
	for {
		r, ok := c.ahead[c.last.Ordinal+1]
		if !ok {
			break
		}
		out = append(out, c.take(r))
	}
	if len(c.ahead) == 0 {
		return out
	}
	for o := range c.ahead {
		if o <= c.last.Ordinal {
			delete(c.ahead, o)
		}
	}
	return out
}
