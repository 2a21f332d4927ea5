package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/lifecycle"
)

func TestAnEventThatCannotBeFoldedIsAHole(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		typ  events.Type
		data string
		want error
	}{
		{"its type is unknown", "keryx.session.sang.v1", "{}", lifecycle.ErrUnknownEvent},
		{"it is another scope's", events.TypeTargetRegistered, "{}", lifecycle.ErrUnknownEvent},
		{"its data is not JSON", events.TypeTurnStarted, "no", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.register(events.Policy{})
			before := l.refold(0)
			r := events.Record{Type: tt.typ, Data: []byte(tt.data), Time: l.now, Sequence: 99, Ordinal: 2, Scope: session.Scope()}
			err := lifecycle.Fold(&l.state, r)
			var hole *lifecycle.HoleError
			if !errors.As(err, &hole) || hole.Sequence != 99 || hole.Type != tt.typ || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("got %v", err)
			}
			if l.state.LastSequence != 99 || l.state.LastOrdinal != 2 {
				t.Errorf("position %+v", l.state.Position)
			}
			before.Position = l.state.Position
			if diff := cmp.Diff(before, l.state, everything); diff != "" {
				t.Errorf("the hole changed the state:\n%s", diff)
			}
		})
	}
}

func TestAHoleWithoutAnOrdinalStillCounts(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	err := lifecycle.Fold(&l.state, events.Record{Sequence: 99})
	if err == nil || l.state.LastOrdinal != 2 {
		t.Errorf("err %v, ordinal %d", err, l.state.LastOrdinal)
	}
}

func TestNothingHappensBeforeTheFirstEpoch(t *testing.T) {
	t.Parallel()
	var s lifecycle.State
	err := lifecycle.Fold(&s, events.Record{Type: events.TypeTurnStarted, Data: []byte("{}")})
	if !errors.Is(err, lifecycle.ErrNoEpoch) || s.Exists() || s.Open() {
		t.Errorf("err %v, exists %v", err, s.Exists())
	}
}
