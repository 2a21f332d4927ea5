package snapshot_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/bustest"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
	"keryx/internal/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is what an index should have.
type model struct {
	segments map[int][]snapshot.Entry
	names    []snapshot.Name
	ids      []snapshot.ID
}

func (m model) contents() (entries []snapshot.Entry, names []snapshot.Name, ids []snapshot.ID) {
	for _, s := range m.segments {
		entries = append(entries, s...)
	}
	return sorted(entries), m.names, m.ids
}

func sorted(es []snapshot.Entry) []snapshot.Entry {
	slices.SortFunc(es, func(a, b snapshot.Entry) int { return a.Slot - b.Slot })
	return es
}

// drawn changes a model and returns the change.
func drawn(rt *rapid.T, m *model, n int) snapshot.Change {
	c := snapshot.Change{Segments: map[int][]snapshot.Entry{}, Profiles: []snapshot.Profile{{Name: "default", Scopes: []events.Scope{events.ScopeProfile}}}}
	for range rapid.IntRange(0, 3).Draw(rt, "segments") {
		seg := rapid.IntRange(0, 4).Draw(rt, "segment")
		var es []snapshot.Entry
		for i := range rapid.IntRange(0, 3).Draw(rt, "sessions") {
			e := snapshot.Entry{Slot: seg*snapshot.SegmentSlots + i, Profile: "default", Snapped: i == 1}
			e.Brief.Summary = events.SessionSummary{Session: events.SessionID(fmt.Sprint("s", e.Slot)), Epoch: 1, Turns: n}
			e.Brief.Host = &events.AttachedHost{Host: "h", Fence: events.Fence{Generation: 1, Sequence: 7}}
			es = append(es, e)
		}
		c.Segments[seg], m.segments[seg] = es, es
	}
	for i := range rapid.SampledFrom([]int{0, 1, 3, 0, 1, 3, 0, 1, 3, 5000}).Draw(rt, "names") {
		c.Names = append(c.Names, snapshot.Name{Subject: fmt.Sprint("name ", n, " ", i), Sequence: events.Sequence(i + 1)})
	}
	for i := range rapid.SampledFrom([]int{0, 2, 0, 2, 0, 2, 0, 2, 9000}).Draw(rt, "ids") {
		c.IDs = append(c.IDs, snapshot.ID{Hash: uint64(i + 1), Slot: uint32(n)}) //nolint:gosec // small
	}
	m.names, m.ids = append(m.names, c.Names...), append(m.ids, c.IDs...)
	return c
}

func TestTheIndexThatIsReadIsTheOneThatWasWritten(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.System(t, b)
	log, end := logged(t, nc)
	var generation atomic.Uint64
	rapid.Check(t, func(rt *rapid.T) {
		s, err := snapshot.Open(t.Context(), nc, log, generation.Add(1))
		if err != nil {
			rt.Fatal(err)
		}
		x, _, ok, err := s.Read(t.Context(), log)
		if err != nil || ok {
			rt.Fatalf("an index of another generation is of use: %v, %v", ok, err)
		}
		m := model{segments: map[int][]snapshot.Entry{}}
		for n := range rapid.IntRange(1, 4).Draw(rt, "writes") {
			c := drawn(rt, &m, n)
			c.Through, c.Anchor = end.Sequence, snapshot.Anchor(end)
			if err := x.Write(t.Context(), c); err != nil {
				rt.Fatal(err)
			}
			next, got, ok, err := s.Read(t.Context(), log)
			if err != nil || !ok {
				rt.Fatalf("read: %v, %v", ok, err)
			}
			entries, names, ids := m.contents()
			if !cmp.Equal(entries, sorted(got.Entries), equateEmpty) || !cmp.Equal(names, got.Names, equateEmpty) || !cmp.Equal(ids, got.IDs, equateEmpty) {
				rt.Fatalf("read %d sessions, %d names, %d ids; want %d, %d, %d or others",
					len(got.Entries), len(got.Names), len(got.IDs), len(entries), len(names), len(ids))
			}
			if rapid.Bool().Draw(rt, "go on with the one read") {
				x = next
			}
		}
	})
}

var equateEmpty = cmpopts.EquateEmpty()

// logged makes a log with a message.
func logged(t *testing.T, nc *nats.Conn) (*sessionlog.Log, sessionlog.Stored) {
	t.Helper()
	log, err := sessionlog.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := log.Append(t.Context(), sessionlog.Message{Subject: events.LogSubject("default", "x"), Data: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	end, err := log.At(t.Context(), seq)
	if err != nil {
		t.Fatal(err)
	}
	return log, end
}

// A write that is cut off after any of its parts leaves the index before.
func TestAWriteThatIsCutOffLeavesTheIndexBefore(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.System(t, b)
	log, end := logged(t, nc)
	s, err := snapshot.Open(t.Context(), nc, log, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, _, _, err := s.Read(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	write := func(turns int) error {
		c := snapshot.Change{Through: end.Sequence, Anchor: snapshot.Anchor(end), Segments: map[int][]snapshot.Entry{}}
		for seg := range 5 {
			c.Segments[seg] = []snapshot.Entry{{Slot: seg * snapshot.SegmentSlots, Brief: brief(turns)}}
		}
		c.Names = []snapshot.Name{{Subject: fmt.Sprint(turns)}}
		return x.Write(t.Context(), c)
	}
	if err := write(1); err != nil {
		t.Fatal(err)
	}
	for parts := range 7 { // five segments, a page, the manifest
		s.CutAfter(parts)
		if err := write(2 + parts); !errors.Is(err, snapshot.ErrCut) {
			t.Fatalf("the write was not cut off after %d parts: %v", parts, err)
		}
		_, got, ok, err := s.Read(t.Context(), log)
		if err != nil || !ok || len(got.Entries) != 5 || len(got.Names) != 1 {
			t.Fatalf("after %d parts: %v, %v, %d sessions", parts, ok, err, len(got.Entries))
		}
		for _, e := range got.Entries {
			if e.Brief.Summary.Turns != 1 {
				t.Errorf("after %d parts: a session of write %d", parts, e.Brief.Summary.Turns)
			}
		}
	}
	s.CutAfter(-1)
	if err := write(100); err != nil {
		t.Fatal(err)
	}
	if _, got, ok, _ := s.Read(t.Context(), log); !ok || got.Entries[0].Brief.Summary.Turns != 100 {
		t.Errorf("after a whole write: %v, %+v", ok, got.Entries)
	}
}

func brief(turns int) lifecycle.Brief {
	return lifecycle.Brief{Summary: events.SessionSummary{Epoch: 1, Turns: turns}}
}
