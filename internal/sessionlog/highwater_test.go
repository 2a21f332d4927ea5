package sessionlog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/sessionlog"
)

var made = time.Date(2026, 12, 1, 10, 0, 0, 123456789, time.UTC)

// stateAt is a log of which nothing was ever removed.
func stateAt(last events.Sequence) sessionlog.State {
	return sessionlog.State{Created: made, Last: last, Messages: uint64(last)}
}

// reopen opens the mark in dir for a store that is at last.
func reopen(t *testing.T, dir string, last events.Sequence) *sessionlog.HighWater {
	t.Helper()
	h, err := sessionlog.OpenHighWater(dir, stateAt(last))
	if err != nil {
		t.Fatalf("open high-water mark with the store at %d: %v", last, err)
	}
	return h
}

func TestHighWater(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		before  events.Sequence // the store at the first start
		created time.Time
		after   events.Sequence
		want    *sessionlog.RegressedError
	}{
		{name: "a new store gets a mark", created: made},
		{name: "a store without a mark is taken as it is", before: 10, created: made, after: 10},
		{name: "a store that went on is taken", before: 10, created: made, after: 12},
		{
			name: "a store that lost its last message is refused", before: 10, created: made, after: 9,
			want: &sessionlog.RegressedError{HighWater: 10, Last: 9},
		},
		{
			name: "a store that lost everything is refused", before: 10, created: made,
			want: &sessionlog.RegressedError{HighWater: 10, Last: 0},
		},
		{
			name: "a log that was made anew is refused even when it is longer", before: 10, created: made.Add(time.Hour), after: 20,
			want: &sessionlog.RegressedError{HighWater: 10, Last: 20, Remade: true},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			reopen(t, dir, tc.before)
			h, err := sessionlog.OpenHighWater(dir, sessionlog.State{Created: tc.created, Last: tc.after, Messages: uint64(tc.after)})
			if tc.want == nil {
				if err != nil || h.Generation() != 1 {
					t.Fatalf("OpenHighWater: %v", err)
				}
				return
			}
			var got *sessionlog.RegressedError
			tc.want.Dir = dir
			if !errors.As(err, &got) || *got != *tc.want {
				t.Fatalf("OpenHighWater: %v, want %v", err, tc.want)
			}
			for _, part := range []string{dir, "10", "--accept-loss"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not name %s: %v", part, err)
				}
			}
		})
	}
}

func TestAcceptingALossRaisesTheGeneration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reopen(t, dir, 10)
	for want := uint64(2); want < 5; want++ {
		h, err := sessionlog.AcceptLoss(dir, stateAt(events.Sequence(10-want)))
		if err != nil || h.Generation() != want {
			t.Fatalf("AcceptLoss: generation %d, %v; want %d", h.Generation(), err, want)
		}
	}
	if h := reopen(t, dir, 6); h.Generation() != 4 {
		t.Errorf("the next start has generation %d, want 4", h.Generation())
	}
}

func TestTheMarkFollowsTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refuses := func(last events.Sequence) bool {
		t.Helper()
		_, err := sessionlog.OpenHighWater(dir, stateAt(last))
		return errors.As(err, new(*sessionlog.RegressedError))
	}
	synctest.Test(t, func(t *testing.T) {
		h := reopen(t, dir, 0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); h.Run(ctx) }()
		h.Note(40)
		h.Note(7)                           // late: the mark never goes back
		time.Sleep(1100 * time.Millisecond) //nolint:forbidigo // fake time
		if synctest.Wait(); !refuses(39) {
			t.Error("after a second the mark is still below 40")
		}
		h.Note(41)
		cancel()
		<-ended
		if !refuses(40) {
			t.Error("the stop did not save the mark at 41")
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "high-water.json.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary file is left: %v", err)
	}
}

func TestADamagedMarkIsNotANewStore(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"empty": "", "cut": `{"stream_crea`, "without a generation": `{"last_sequence":4}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "high-water.json")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := sessionlog.OpenHighWater(dir, stateAt(10)); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("OpenHighWater: %v, want an error that names %s", err, path)
			}
		})
	}
}

func TestWhatAKillLeftBesideTheMarkIsHarmless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reopen(t, dir, 10)
	if err := os.WriteFile(filepath.Join(dir, "high-water.json.tmp"), []byte(`{"last_seq`), 0o600); err != nil {
		t.Fatal(err)
	}
	reopen(t, dir, 12)
	if _, err := sessionlog.OpenHighWater(dir, stateAt(11)); !errors.As(err, new(*sessionlog.RegressedError)) {
		t.Errorf("OpenHighWater: %v, want the mark at 12", err)
	}
}

func TestMessagesThatAreGoneBelowTheMarkAreMissedUnlessTheyWereRemovedOnPurpose(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		begun, counted int    // removals
		messages       uint64 // of 12
		missing        uint64
	}{
		{name: "all are there", messages: 12},
		{name: "two are gone", messages: 10, missing: 2},
		{name: "two are gone that were removed and counted again", begun: 1, counted: 1, messages: 10},
		{name: "two are gone besides those that were removed", begun: 1, counted: 1, messages: 8, missing: 2},
		{name: "a kill while they were being removed says nothing", begun: 1, messages: 3},
		{name: "one of two removals still runs at the kill", begun: 2, counted: 1, messages: 3},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h := reopen(t, dir, 10)
			for range tc.begun {
				if err := h.Purging(); err != nil {
					t.Fatal(err)
				}
			}
			for range tc.counted {
				h.Purged(sessionlog.State{Created: made, Last: 10, Messages: 8})
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			h.Run(ctx) // writes the file once more
			_, err := sessionlog.OpenHighWater(dir, sessionlog.State{Created: made, Last: 12, Messages: tc.messages})
			var regressed *sessionlog.RegressedError
			if tc.missing == 0 && err != nil || tc.missing > 0 && (!errors.As(err, &regressed) || regressed.Missing != tc.missing) {
				t.Errorf("a log of 12 sequences with %d messages: %v; want %d missed", tc.messages, err, tc.missing)
			}
		})
	}
}
