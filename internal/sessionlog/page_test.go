package sessionlog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/sessionlog"
)

func sequences(page []sessionlog.Stored) []events.Sequence {
	var out []events.Sequence
	for _, m := range page {
		out = append(out, m.Sequence)
	}
	return out
}

func TestPage(t *testing.T) {
	t.Parallel()
	// Subject a has the odd sequences 1 to 19, b the even ones.
	l, _ := open(t)
	for i := range 10 {
		for _, scope := range []events.Scope{"a", "b"} {
			if _, err := l.Append(t.Context(), message(t, scope, events.Ordinal(i+1), nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name        string
		subject     string
		from        events.Sequence
		limit, size int
		want        []events.Sequence
		next        events.Sequence
	}{
		{name: "a page from the beginning leaves the rest for the next", subject: "a", from: 1, limit: 3, want: []events.Sequence{1, 3, 5}, next: 6},
		{name: "the next page goes on without a repeat", subject: "a", from: 6, limit: 3, want: []events.Sequence{7, 9, 11}, next: 12},
		{name: "a page that takes the last message ends at the tip", subject: "a", from: 13, limit: 4, want: []events.Sequence{13, 15, 17, 19}},
		{name: "a limit beyond the tip ends there", subject: "a", from: 17, limit: 100, want: []events.Sequence{17, 19}},
		{name: "a page of one", subject: "a", from: 2, limit: 1, want: []events.Sequence{3}, next: 4},
		{name: "the last message alone", subject: "b", from: 20, limit: 1, want: []events.Sequence{20}},
		{name: "a page from behind the tip is empty", subject: "a", from: 20, limit: 5},
		{name: "a page of an unknown subject is empty", subject: "c", from: 1, limit: 5},
		{name: "a pattern takes all subjects in order", subject: "*", from: 4, limit: 3, want: []events.Sequence{4, 5, 6}, next: 7},
		{name: "a page of few bytes has one message nevertheless", subject: "a", from: 1, limit: 5, size: 1, want: []events.Sequence{1}, next: 2},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			page, next, err := l.Page(t.Context(), "kx.log.main."+tc.subject, tc.from, tc.limit, tc.size)
			if err != nil {
				t.Fatal(err)
			}
			if got := sequences(page); !slices.Equal(got, tc.want) || next != tc.next {
				t.Errorf("page %v, next %d; want %v, next %d", got, next, tc.want, tc.next)
			}
		})
	}
	for _, bad := range []struct {
		from  events.Sequence
		limit int
	}{{0, 1}, {1, 0}, {1, -1}} {
		if _, _, err := l.Page(t.Context(), subjectOf("a"), bad.from, bad.limit, 0); err == nil {
			t.Errorf("a page from %d with limit %d was read", bad.from, bad.limit)
		}
	}
}

func TestAPageIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	body := []byte(strings.Repeat("x", 10_000))
	for range 10 {
		if _, err := l.Append(t.Context(), sessionlog.Message{Subject: subjectOf("s"), Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	var seen, pages int
	for from := events.Sequence(1); from != 0; pages++ {
		page, next, err := l.Page(t.Context(), subjectOf("s"), from, 100, 25_000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > 3 {
			t.Errorf("a page of 25,000 bytes has %d messages of 10,000", len(page))
		}
		seen, from = seen+len(page), next
	}
	if seen != 10 || pages != 4 {
		t.Errorf("%d messages in %d pages, want 10 in 4", seen, pages)
	}
}

func TestWhatIsReadIsWhatWasAppended(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	want := sessionlog.Message{
		Subject: subjectOf("s"), Data: []byte(`{"n":12345678901234567890,"z":1,"a":[ ]}`),
		Header: nats.Header{"ce-type": {"keryx.session.idle.v1"}, "ce-empty": {""}},
	}
	first, err := l.AppendBatch(t.Context(), []sessionlog.Message{want, {Subject: subjectOf("other")}})
	if err != nil {
		t.Fatal(err)
	}
	want.Expect = at(first[0])
	second, err := l.Append(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	page, _, err := l.Page(t.Context(), want.Subject, 1, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	last, err := l.Last(t.Context(), want.Subject)
	if err != nil {
		t.Fatal(err)
	}
	if got := sequences(append(page, last)); !slices.Equal(got, []events.Sequence{first[0], second, second}) {
		t.Fatalf("read sequences %v", got)
	}
	for _, got := range append(page, last) {
		if diff := cmp.Diff(want.Header, got.Header); diff != "" {
			t.Errorf("header at %d (-want +got):\n%s", got.Sequence, diff)
		}
		if string(got.Data) != string(want.Data) || got.Subject != want.Subject || got.Time.IsZero() {
			t.Errorf("at %d: %s at %v: %s", got.Sequence, got.Subject, got.Time, got.Data)
		}
	}
}

func TestLastOfNothing(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	if _, err := l.Last(t.Context(), subjectOf("s")); !errors.Is(err, sessionlog.ErrNone) {
		t.Errorf("Last: %v, want ErrNone", err)
	}
	if last, err := l.LastSequence(t.Context()); err != nil || last != 0 {
		t.Errorf("LastSequence of an empty log: %d, %v", last, err)
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	const n = 5000 // more than one batch
	ms := make([]sessionlog.Message, 0, 1000)
	for i := range n {
		scope := events.Scope(fmt.Sprintf("s%d", i%7))
		if ms = append(ms, sessionlog.Message{Subject: subjectOf(scope), Data: []byte(`{}`)}); len(ms) == cap(ms) {
			if _, err := l.AppendBatch(t.Context(), ms); err != nil {
				t.Fatal(err)
			}
			ms = ms[:0]
		}
	}
	scan := func(pattern string, from events.Sequence) []events.Sequence {
		var out []events.Sequence
		err := l.Scan(t.Context(), pattern, from, func(m sessionlog.Stored) error {
			out = append(out, m.Sequence)
			return nil
		})
		if err != nil {
			t.Fatalf("scan %s from %d: %v", pattern, from, err)
		}
		return out
	}
	for from, want := range map[events.Sequence]int{0: n, 1: n, 4097: n - 4096, n: 1, n + 1: 0} {
		got := scan(">", from)
		if len(got) != want || !slices.IsSorted(got) || (want > 0 && got[want-1] != n) {
			t.Errorf("a scan from %d has %d messages, want %d up to %d in order", from, len(got), want, n)
		}
	}
	if got := scan(subjectOf("s3"), 1); len(got) != n/7 || got[0] != 4 || got[1] != 11 {
		t.Errorf("a scan of one subject has %d messages, the first at %v", len(got), got[:2])
	}
	if got := scan("kx.id.>", 1); len(got) != 0 {
		t.Errorf("a scan of a pattern without messages has %d", len(got))
	}
}

func TestAScanStopsAtItsCallersError(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	fill(t, l, "s", 5)
	enough := errors.New("enough")
	calls := 0
	err := l.Scan(t.Context(), ">", 1, func(sessionlog.Stored) error {
		if calls++; calls == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || calls != 2 {
		t.Errorf("Scan = %v after %d calls, want %v after 2", err, calls, enough)
	}
}
