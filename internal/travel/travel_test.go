package travel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/client"
	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/travel"
)

func TestNowIsWhatTheBusHas(t *testing.T) {
	t.Parallel()
	gw := startBus(t)
	id := told(t, gw, "one", "two")
	p, err := travel.To(t.Context(), gw, "default", id.Scope(), travel.Moment{})
	if err != nil {
		t.Fatalf("travel: %v", err)
	}
	// What is owed after the last turn may come between the two readings.
	v, err := gw.Show(t.Context(), string(id))
	for ; err == nil && v.LastOrd != p.State.LastOrdinal; v, err = gw.Show(t.Context(), string(id)) {
		if p, err = travel.To(t.Context(), gw, "default", id.Scope(), travel.Moment{}); err != nil {
			t.Fatalf("travel: %v", err)
		}
	}
	if err != nil {
		t.Fatalf("show: %v", err)
	}
	if diff := cmp.Diff(asJSON(t, v), asJSON(t, p.State.View())); diff != "" {
		t.Errorf("(-bus +folded):\n%s", diff)
	}
}

// TestEachMomentIsTheFoldOfWhatWasBefore names each moment in the three ways there are.
func TestEachMomentIsTheFoldOfWhatWasBefore(t *testing.T) {
	t.Parallel()
	gw := startBus(t)
	id := told(t, gw, "one", "two", "three")
	var all []events.Record
	if _, _, err := travel.Walk(t.Context(), gw, id.Scope(), func(r events.Record, hole error) bool {
		all = append(all, r)
		return hole == nil
	}); err != nil || len(all) < 12 {
		t.Fatalf("walk: %d events, %v", len(all), err)
	}
	s := &lifecycle.State{Identity: lifecycle.Identity{Profile: "default", Session: id}}
	for i, r := range all {
		if err := lifecycle.Fold(s, r); err != nil {
			t.Fatalf("fold: %v", err)
		}
		moments := []travel.Moment{{Ordinal: r.Ordinal}, {Sequence: r.Sequence}}
		if i == len(all)-1 || all[i+1].Time.After(r.Time) {
			moments = append(moments, travel.Moment{Time: r.Time})
		}
		if i < len(all)-1 && all[i+1].Sequence > r.Sequence+1 { // a name between them
			moments = append(moments, travel.Moment{Sequence: r.Sequence + 1})
		}
		for _, m := range moments {
			p, err := travel.To(t.Context(), gw, "default", id.Scope(), m)
			if err != nil {
				t.Fatalf("to %s: %v", m, err)
			}
			if diff := cmp.Diff(asJSON(t, s.View()), asJSON(t, p.State.View())); diff != "" {
				t.Errorf("at %s (-want +got):\n%s", m, diff)
			}
		}
	}
}

func TestAMomentAtWhichThereIsNothingIsRefused(t *testing.T) {
	t.Parallel()
	gw := startBus(t)
	id := told(t, gw)
	for _, c := range []struct {
		name string
		m    travel.Moment
		says string
	}{
		{"an ordinal that is not there yet", travel.Moment{Ordinal: 99}, "ends at ordinal"},
		{"a sequence that is not there yet", travel.Moment{Sequence: 9999}, "ends at ordinal"},
		{"a sequence before the session", travel.Moment{Sequence: 1}, "there was nothing"},
		{"a time before the session", travel.Moment{Time: time.Now().Add(-time.Hour)}, "there was nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := travel.To(context.WithoutCancel(t.Context()), gw, "default", id.Scope(), c.m)
			if events.CodeOf(err) != events.CodeInvalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// pages is a record in pages of two.
type pages struct {
	records []events.Record
	holes   map[events.Sequence]error
}

func (s pages) Page(_ context.Context, scope events.Scope, from events.Sequence, _ int) (client.Page, error) {
	rest := s.records[len(s.records):]
	if i := slices.IndexFunc(s.records, func(r events.Record) bool { return r.Sequence >= from }); i >= 0 {
		rest = s.records[i:]
	}
	p := client.Page{Records: rest, Holes: s.holes}
	if last := s.records[len(s.records)-1]; true {
		p.Tip = events.Tip{Scope: scope, Sequence: last.Sequence, Ordinal: last.Ordinal}
	}
	if len(rest) > 2 {
		p.Records, p.Next = rest[:2], rest[2].Sequence
	}
	return p, nil
}

func TestWhatIsNoLongerKeptIsRefusedAndHolesAreCounted(t *testing.T) {
	t.Parallel()
	data := asJSON(t, events.SessionReset{Reason: "again", Carry: events.Carry{Owner: "gw", Turns: 3}})
	src := pages{
		records: []events.Record{
			{Type: events.TypeSessionReset, Sequence: 50, Ordinal: 20, Epoch: 2, Data: []byte(data)},
			{Sequence: 51, Ordinal: 21},
			{Type: events.TypeSessionStarted, Sequence: 60, Ordinal: 22, Epoch: 2, Data: []byte(`{"host":"h"}`)},
		},
		holes: map[events.Sequence]error{51: errors.New("broken")},
	}
	p, err := travel.To(t.Context(), src, "default", "01K0SESSION000000000000000", travel.Moment{})
	if err != nil || p.Holes != 1 || p.State.Turns != 3 || !p.State.Started || p.State.Epoch != 2 {
		t.Errorf("got %d holes, %+v, %v", p.Holes, p.State, err)
	}
	_, err = travel.To(t.Context(), src, "default", "01K0SESSION000000000000000", travel.Moment{Ordinal: 19})
	if events.CodeOf(err) != events.CodeInvalid || !strings.Contains(err.Error(), "no longer kept") {
		t.Errorf("before what is kept: %v", err)
	}
}
