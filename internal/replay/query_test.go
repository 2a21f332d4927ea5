package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
	"keryx/internal/replay"
)

// record of one scope in pages of three, as the bus gives it.
type source struct {
	records []events.Record
	holes   map[events.Sequence]error
	follow  []error // by index of the record it comes before
}

func (s source) Page(_ context.Context, _ events.Scope, from events.Sequence, _ int) (client.Page, error) {
	p := client.Page{Holes: s.holes}
	if n := len(s.records); n > 0 {
		last := s.records[n-1]
		p.Tip = events.Tip{Scope: last.Scope, Sequence: last.Sequence, Ordinal: last.Ordinal}
	}
	for _, r := range s.records {
		switch {
		case r.Sequence < from:
		case len(p.Records) == 3:
			p.Next = r.Sequence
			return p, nil
		default:
			p.Records = append(p.Records, r)
		}
	}
	return p, nil
}

func (s source) Follow(_ context.Context, _ client.FollowConfig) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for i, r := range s.records {
			if i < len(s.follow) && s.follow[i] != nil && !yield(events.Record{}, s.follow[i]) {
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

var column = regexp.MustCompile(`^\S+ +(\d+) e\d+ +(\S+)`)

// told returns ordinal and type of each line, notices as they are.
func told(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch m := column.FindStringSubmatch(line); {
		case m != nil:
			out = append(out, m[1]+" "+m[2])
		case !strings.HasPrefix(line, "-- 20"):
			out = append(out, line)
		}
	}
	return out
}

func printed(t *testing.T, src replay.Source, q replay.Query) string {
	t.Helper()
	if err := q.Validate(); err != nil {
		t.Fatalf("validate: %v", err)
	}
	var b bytes.Buffer
	if err := replay.Print(t.Context(), src, replay.NewWriter(&b, replay.Options{}), "01K0SESSION000000000000000", q); err != nil {
		t.Fatalf("print: %v", err)
	}
	return b.String()
}

func TestPrintShowsTheWholeRecordOverPages(t *testing.T) {
	t.Parallel()
	rs := story(t)
	if diff := cmp.Diff(written(t, replay.Options{}, rs...), printed(t, source{records: rs}, replay.Query{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintShowsOnlyWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	rs := story(t)
	for _, c := range []struct {
		name string
		q    replay.Query
		want []string
	}{
		{"a range of ordinals", replay.Query{From: 4, To: 6}, []string{"4 continuation.offered", "5 session.started", "6 turn.started"}},
		{"types in short form", replay.Query{Types: []string{"turn.*"}}, []string{"6 turn.started", "10 turn.ended", "13 turn.started", "14 turn.ended"}},
		{"types in full", replay.Query{Types: []string{"keryx.session.re*"}}, []string{"1 session.registered", "16 session.reset"}},
		{"range and types", replay.Query{From: 7, Types: []string{"turn.ended"}}, []string{"10 turn.ended", "14 turn.ended"}},
		{"nothing fits", replay.Query{From: 99}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, told(printed(t, source{records: rs}, c.q))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATurnsDurationIsToldThoughItsStartIsNotShown(t *testing.T) {
	t.Parallel()
	got := printed(t, source{records: story(t)}, replay.Query{From: 10, To: 10})
	if !strings.Contains(got, "completed in 905ms") {
		t.Errorf("got %s", got)
	}
}

func TestHolesAndGapsAreLinesOfTheirOwn(t *testing.T) {
	t.Parallel()
	rs := story(t)[4:8]
	broken := rs[2]
	rs[2] = events.Record{Profile: broken.Profile, Scope: broken.Scope, Sequence: broken.Sequence, Ordinal: broken.Ordinal}
	src := source{records: rs, holes: map[events.Sequence]error{broken.Sequence: errors.New("not\x1b[2J a CloudEvent")}}
	want := []string{
		"-- gap: events 1 to 4 of 01K0SESSION000000000000000 are no longer kept",
		"5 session.started", "6 turn.started",
		`-- hole: event 7 of 01K0SESSION000000000000000 (sequence 17) cannot be decoded: not\x1b[2J a CloudEvent`,
		"8 exec.started",
	}
	if diff := cmp.Diff(want, told(printed(t, src, replay.Query{}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want[0] = "-- gap: events 3 to 4 of 01K0SESSION000000000000000 are no longer kept"
	if diff := cmp.Diff(want, told(printed(t, src, replay.Query{From: 3}))); diff != "" {
		t.Errorf("from 3 (-want +got):\n%s", diff)
	}
}

func TestTailEndsAtTheEndOfItsRangeAndPassesHolesAndGaps(t *testing.T) {
	t.Parallel()
	src := source{records: story(t), follow: []error{
		nil, &follow.GapError{Scope: "S", From: 2, To: 3},
		fmt.Errorf("wrapped: %w", &client.HoleError{Scope: "S", Sequence: 9, Err: errors.New("broken")}),
	}}
	var b bytes.Buffer
	err := replay.Tail(t.Context(), src, replay.NewWriter(&b, replay.Options{}), replay.FollowConfig{Query: replay.Query{To: 3}})
	if err != nil {
		t.Fatalf("tail: %v", err)
	}
	want := []string{
		"1 session.registered", "-- gap: events 2 to 3 of S are no longer kept", "2 continuation.queued",
		"-- hole: event 0 of  (sequence 0) cannot be decoded: broken", "3 session.attached",
	}
	if diff := cmp.Diff(want, told(b.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTailReportsWhyFollowingEnded(t *testing.T) {
	t.Parallel()
	broken := errors.New("gone")
	src := source{records: story(t), follow: []error{broken}}
	err := replay.Tail(t.Context(), src, replay.NewWriter(&bytes.Buffer{}, replay.Options{}), replay.FollowConfig{})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestAnEmptyRangeAndABadGlobAreRefused(t *testing.T) {
	t.Parallel()
	for _, q := range []replay.Query{{From: 5, To: 4}, {Types: []string{"turn.["}}} {
		if q.Validate() == nil {
			t.Errorf("%+v is taken", q)
		}
	}
}
