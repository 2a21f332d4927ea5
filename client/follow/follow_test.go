package follow_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/client/follow"
	"keryx/events"
)

const scope events.Scope = "s"

// rec is the event with an ordinal; its sequence is ten times that.
func rec(o events.Ordinal) events.Record {
	return events.Record{Scope: scope, Ordinal: o, Sequence: events.Sequence(10 * o)}
}

// recs are the events from one ordinal to another.
func recs(from, to events.Ordinal) []events.Record {
	var out []events.Record
	for o := from; o <= to; o++ {
		out = append(out, rec(o))
	}
	return out
}

func tip(o events.Ordinal) events.Tip {
	return events.Tip{Scope: scope, Ordinal: o, Sequence: events.Sequence(10 * o)}
}

func hole(seq events.Sequence) events.Record { return events.Record{Scope: scope, Sequence: seq} }

func ordinals(rs []events.Record) []events.Ordinal {
	var out []events.Ordinal
	for _, r := range rs {
		out = append(out, r.Ordinal)
	}
	return out
}

// step is one thing that comes to a cursor, and what the cursor makes of it.
type step struct {
	live   events.Record
	page   []events.Record
	end    events.Tip
	tip    events.Tip
	want   []events.Ordinal // handed out
	gap    *follow.GapError
	next   events.Sequence // to fetch from, afterwards; 0 when not behind
	isPage bool
}

func live(o events.Ordinal) step { return step{live: rec(o)} }

func page(end events.Tip, rs ...events.Record) step { return step{page: rs, end: end, isPage: true} }

func (s step) gives(next events.Sequence, os ...events.Ordinal) step {
	s.want, s.next = os, next
	return s
}

func (s step) lacks(from, to events.Ordinal) step {
	s.gap = &follow.GapError{Scope: scope, From: from, To: to}
	return s
}

func TestCursor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		cursor *follow.Cursor
		steps  []step
	}{
		{"live events in order are handed out at once", follow.New(scope, 0), []step{
			live(1).gives(0, 1), live(2).gives(0, 2),
		}},
		{"a repeated event is dropped", follow.New(scope, 0), []step{
			live(1).gives(0, 1), live(1).gives(0), live(2).gives(0, 2), live(1).gives(0),
		}},
		{"an early event waits for the page before it", follow.New(scope, 0), []step{
			live(3).gives(1), page(tip(3), recs(1, 3)...).gives(0, 1, 2, 3),
		}},
		{"a page may end before what is live already", follow.New(scope, 0), []step{
			live(1).gives(0, 1), live(4).gives(11), live(5).gives(11),
			page(tip(3), recs(2, 3)...).gives(0, 2, 3, 4, 5),
		}},
		{"a page that lags behind live is dropped", follow.New(scope, 0), []step{
			live(2).gives(1), live(1).gives(0, 1, 2), page(tip(1), recs(1, 1)...).gives(0),
		}},
		{"a tip shows that the last event was lost", follow.New(scope, 0), []step{
			live(1).gives(0, 1), {tip: tip(2), next: 11}, page(tip(2), rec(2)).gives(0, 2),
		}},
		{"an old tip says nothing", follow.At(tip(5)), []step{
			{tip: tip(3)}, live(6).gives(0, 6),
		}},
		{"pages follow each other", follow.New(scope, 0), []step{
			{tip: tip(4), next: 1}, page(events.Tip{}, recs(1, 2)...).gives(21, 1, 2), page(tip(4), recs(3, 4)...).gives(0, 3, 4),
		}},
		{"from a sequence on, what was before is dropped", follow.New(scope, 25), []step{
			live(2).gives(0), live(4).gives(25), page(tip(4), recs(3, 4)...).gives(0, 3, 4), live(5).gives(0, 5),
		}},
		{"from a sequence that is not there yet, the first event is handed out", follow.New(scope, 100), []step{
			{tip: tip(3)}, live(10).gives(100), page(tip(10), rec(10)).gives(0, 10),
		}},
		{"from a tip on, the next event is the first", follow.At(tip(5)), []step{
			live(5).gives(0), live(7).gives(51), page(tip(7), recs(6, 7)...).gives(0, 6, 7),
		}},
		{"what is no longer kept is a gap", follow.New(scope, 0), []step{
			live(6).gives(1), page(tip(6), recs(4, 6)...).gives(0, 4, 5, 6).lacks(1, 3),
		}},
		{"behind a hole in the middle a page stops, and the next one shows it", follow.New(scope, 0), []step{
			{tip: tip(6), next: 1},
			page(tip(6), rec(1), rec(2), rec(5), rec(6)).gives(21, 1, 2),
			page(tip(6), rec(5), rec(6)).gives(0, 5, 6).lacks(3, 4),
		}},
		{"what is gone up to the tip is a gap", follow.At(tip(2)), []step{
			{tip: tip(4), next: 21}, page(tip(4)).gives(0).lacks(3, 4), live(5).gives(0, 5),
		}},
		{"what is gone at the end of a page shows at the next", follow.At(tip(2)), []step{
			{tip: tip(4), next: 21}, page(tip(4), rec(3)).gives(31, 3), page(tip(4)).gives(0).lacks(4, 4),
		}},
		{"an unreadable record takes its place", follow.New(scope, 0), []step{
			live(1).gives(0, 1), live(3).gives(11), page(tip(3), hole(20), rec(3)).gives(0, 2, 3),
		}},
		{"an unreadable record comes once", follow.New(scope, 0), []step{
			{tip: tip(2), next: 1}, page(tip(2), rec(1), hole(20)).gives(0, 1, 2), page(tip(2), rec(1), hole(20)).gives(0), live(3).gives(0, 3),
		}},
		{"an unreadable first record is no gap", follow.New(scope, 25), []step{
			live(5).gives(25), page(events.Tip{}, hole(30)).gives(31, 0), page(tip(5), recs(4, 5)...).gives(0, 4, 5),
		}},
		{"after unreadable records alone the tip tells the ordinals", follow.New(scope, 25), []step{
			{tip: tip(4), next: 25}, page(tip(4), hole(30), hole(40)).gives(0, 3, 4), live(5).gives(0, 5),
		}},
		{"an unreadable record behind a gap has the ordinal its successor tells", follow.New(scope, 0), []step{
			live(6).gives(1), page(tip(6), hole(40), rec(5), rec(6)).gives(0, 4, 5, 6).lacks(1, 3),
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := tc.cursor
			for i, s := range tc.steps {
				var got []events.Record
				var gap *follow.GapError
				switch {
				case s.isPage:
					got, gap = c.Page(s.page, s.end)
				case s.tip != (events.Tip{}):
					c.Tip(s.tip)
				default:
					got = c.Live(s.live)
				}
				if !slices.Equal(ordinals(got), s.want) {
					t.Fatalf("step %d hands out %v, want %v", i+1, ordinals(got), s.want)
				}
				if diff := cmp.Diff(s.gap, gap); diff != "" {
					t.Fatalf("step %d, gap (-want +got):\n%s", i+1, diff)
				}
				if c.Behind() != (s.next != 0) || (s.next != 0 && c.Next() != s.next) {
					t.Fatalf("step %d: behind %v, next %d; want next %d", i+1, c.Behind(), c.Next(), s.next)
				}
			}
		})
	}
}

func TestACursorKeepsABoundedNumberOfEarlyEvents(t *testing.T) {
	t.Parallel()
	c := follow.New(scope, 0)
	const top = 4 * follow.MaxAhead
	for o := events.Ordinal(2); o <= top; o++ {
		if got := c.Live(rec(o)); len(got) != 0 {
			t.Fatalf("ordinal %d was handed out before 1", o)
		}
	}
	got, gap := c.Page(recs(1, 1), events.Tip{})
	if len(got) != 1+follow.MaxAhead || gap != nil {
		t.Fatalf("with the first event %d were handed out, gap %v; want those kept, %d", len(got), gap, 1+follow.MaxAhead)
	}
	if !c.Behind() {
		t.Fatal("what was not kept is not missed")
	}
	rest, _ := c.Page(recs(1, top), tip(top))
	if want := top - len(got); len(rest) != want || c.Behind() {
		t.Errorf("the rest has %d events, want %d; behind %v", len(rest), want, c.Behind())
	}
}
