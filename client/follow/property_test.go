package follow_test

import (
	"testing"

	"pgregory.net/rapid"

	"keryx/client/follow"
	"keryx/events"
)

// world is a log, the cursor that follows it, and everything that is on its way from
// one to the other: live messages, pages and tips, each as it was when it was sent.
type world struct {
	log    []events.Record // log[i] has ordinal i+1
	first  int             // index of the oldest event kept
	holes  map[events.Sequence]bool
	begin  events.Sequence
	cursor *follow.Cursor
	live   []events.Record
	pages  []answer
	tips   []events.Tip
	next   events.Ordinal  // what has to be handed out next; 0 when any will do
	last   events.Sequence // handed out last
}

type answer struct {
	records []events.Record
	end     events.Tip
}

func (w *world) append(t *rapid.T) {
	last := events.Sequence(0)
	if n := len(w.log); n > 0 {
		last = w.log[n-1].Sequence
	}
	r := events.Record{
		Scope: scope, Ordinal: events.Ordinal(len(w.log) + 1),
		Sequence: last + events.Sequence(rapid.IntRange(1, 3).Draw(t, "others")),
	}
	w.log = append(w.log, r)
	if rapid.IntRange(0, 9).Draw(t, "unreadable") == 0 {
		w.holes[r.Sequence] = true
		return // a live message that cannot be read is a tip at most
	}
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "copies") {
		w.live = append(w.live, r)
	}
}

func (w *world) tip() events.Tip {
	if len(w.log) == 0 {
		return events.Tip{}
	}
	r := w.log[len(w.log)-1]
	return events.Tip{Scope: scope, Sequence: r.Sequence, Ordinal: r.Ordinal}
}

// ask sends a page as the log has it now.
func (w *world) ask(limit int) {
	a := answer{end: w.tip()}
	for i := w.first; i < len(w.log); i++ {
		r := w.log[i]
		if r.Sequence < w.cursor.Next() {
			continue
		}
		if len(a.records) == limit {
			a.end = events.Tip{}
			break
		}
		if w.holes[r.Sequence] {
			r.Ordinal = 0
		}
		a.records = append(a.records, r)
	}
	w.pages = append(w.pages, a)
}

// purge removes old events, never the last one, so that the oldest kept can be read:
// which ordinal it has is known from nothing else.
func (w *world) purge(t *rapid.T) {
	if len(w.log) <= w.first+1 {
		return
	}
	oldest := rapid.IntRange(w.first, len(w.log)-1).Draw(t, "oldest")
	if !w.holes[w.log[oldest].Sequence] {
		w.first = oldest
	}
}

// pick takes something off a list, not always the oldest: what is on its way may pass
// something else.
func pick[T any](t *rapid.T, from *[]T) (T, bool) {
	var none T
	if len(*from) == 0 {
		return none, false
	}
	i := rapid.IntRange(0, min(3, len(*from)-1)).Draw(t, "which")
	x := (*from)[i]
	*from = append((*from)[:i:i], (*from)[i+1:]...)
	return x, true
}

func (w *world) takeLive(t *rapid.T) {
	if r, ok := pick(t, &w.live); ok {
		w.check(t, w.cursor.Live(r), nil)
	}
}

func (w *world) takePage(t *rapid.T) {
	if a, ok := pick(t, &w.pages); ok {
		got, gap := w.cursor.Page(a.records, a.end)
		w.check(t, got, gap)
	}
}

func (w *world) takeTip(t *rapid.T) {
	if tip, ok := pick(t, &w.tips); ok {
		w.cursor.Tip(tip)
	}
}

// check is the property: each ordinal once, in order, and a gap only where events are
// gone.
func (w *world) check(t *rapid.T, got []events.Record, gap *follow.GapError) {
	if gap != nil {
		if (w.next != 0 && gap.From != w.next) || gap.To < gap.From || int(gap.To) > w.first {
			t.Fatalf("gap %d to %d; next is %d, kept from %d", gap.From, gap.To, w.next, w.first+1)
		}
		w.next = gap.To + 1
	}
	for _, r := range got {
		if r.Sequence < w.begin {
			t.Fatalf("sequence %d was handed out, before %d", r.Sequence, w.begin)
		}
		ordinal := w.ordinalAt(t, r.Sequence)
		if r.Ordinal != ordinal && r.Ordinal != 0 {
			t.Fatalf("ordinal %d was handed out as %d", ordinal, r.Ordinal)
		}
		if w.next != 0 && ordinal != w.next {
			t.Fatalf("ordinal %d was handed out, next is %d", ordinal, w.next)
		}
		w.next = ordinal + 1
		if r.Ordinal == 0 { // so the cursor cannot know what comes next
			w.next = 0
		}
		if r.Sequence <= w.last {
			t.Fatalf("sequence %d was handed out after %d", r.Sequence, w.last)
		}
		w.last = r.Sequence
	}
}

func (w *world) ordinalAt(t *rapid.T, seq events.Sequence) events.Ordinal {
	for _, r := range w.log {
		if r.Sequence == seq {
			return r.Ordinal
		}
	}
	t.Fatalf("sequence %d was handed out and never appended", seq)
	return 0
}

// finish lets the follower come to the end, as the 15 s round of tips does.
func (w *world) finish(t *rapid.T) {
	w.cursor.Tip(w.tip())
	for rounds := 0; w.cursor.Behind(); rounds++ {
		if rounds > 2*len(w.log)+2 {
			t.Fatalf("still behind after %d pages: at %v of %v", rounds, w.cursor.Last(), w.tip())
		}
		w.pages = nil
		w.ask(rapid.IntRange(1, 7).Draw(t, "limit"))
		w.takePage(t)
	}
	wanted := len(w.log) > 0 && w.tip().Sequence >= w.begin
	if wanted && w.last != w.tip().Sequence {
		t.Fatalf("handed out up to sequence %d, the tip is %d", w.last, w.tip().Sequence)
	}
}

func TestEachOrdinalIsHandedOutOnceAndInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{holes: make(map[events.Sequence]bool), begin: events.Sequence(rapid.IntRange(0, 30).Draw(t, "begin"))}
		w.cursor = follow.New(scope, w.begin)
		if w.begin <= 1 {
			w.next = 1
		}
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 19).Draw(t, "step") {
			case 0:
				w.purge(t)
			case 1, 2:
				w.ask(rapid.IntRange(1, 7).Draw(t, "limit"))
			case 3, 4:
				w.takePage(t)
			case 5:
				w.tips = append(w.tips, w.tip())
			case 6:
				w.takeTip(t)
			case 7, 8, 9, 10, 11, 12, 13:
				w.takeLive(t)
			default:
				w.append(t)
			}
		}
		w.finish(t)
	})
}
