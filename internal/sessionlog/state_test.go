package sessionlog_test

import (
	"context"
	"testing"

	"keryx/events"
	"keryx/internal/bustest"
	"keryx/internal/sessionlog"
)

// TestWhateverIsRemovedOnPurposeIsNotMissed: a store from which a session was purged, cleared
// or deleted has to start again.
func TestWhateverIsRemovedOnPurposeIsNotMissed(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(context.Context, *sessionlog.Log, []events.Sequence) error{
		"purged up to a sequence": func(ctx context.Context, l *sessionlog.Log, at []events.Sequence) error {
			return l.Purge(ctx, subjectOf("s"), at[2])
		},
		"purged as a whole": func(ctx context.Context, l *sessionlog.Log, _ []events.Sequence) error {
			return l.Purge(ctx, subjectOf("s"), 0)
		},
		"cleared": func(ctx context.Context, l *sessionlog.Log, _ []events.Sequence) error {
			return l.Clear(ctx, subjectOf("s"))
		},
		"deleted": func(ctx context.Context, l *sessionlog.Log, at []events.Sequence) error { return l.Delete(ctx, at[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Broker(t)
			l := openOn(t, bustest.System(t, b))
			h := mark(t, l, b.Dir())
			l.Count(h)
			at := fill(t, l, "s", 4)
			h.Note(at[3])
			if err := remove(t.Context(), l, at); err != nil {
				t.Fatal(err)
			}
			last := fill(t, l, "other", 1)
			h.Note(last[0])
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			h.Run(ctx) // writes the file once more
			mark(t, l, b.Dir())
			if m, err := sessionlog.ReadMark(b.Dir()); err != nil || m.Purging {
				t.Errorf("the mark is %+v, %v", m, err)
			}
		})
	}
}

// mark opens the mark of a log as it is now.
func mark(t *testing.T, l *sessionlog.Log, dir string) *sessionlog.HighWater {
	t.Helper()
	s, err := l.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := sessionlog.OpenHighWater(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
