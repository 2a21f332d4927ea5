package alarm_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"keryx/internal/alarm"
)

func TestKeysComeAtTheirTimesAndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		clock := func() time.Duration { return time.Since(begun) + 1 }
		q := alarm.New[string]()
		q.Set("late", 30*time.Second)
		q.Set("early", 10*time.Second)
		q.Set("moved", time.Second)
		q.Set("moved", 20*time.Second)
		q.Set("gone", 5*time.Second)
		q.Set("gone", 0)
		for _, want := range []struct {
			key string
			at  time.Duration
		}{{"early", 10 * time.Second}, {"moved", 20 * time.Second}, {"late", 30 * time.Second}} {
			key, stalled, ok := q.Wait(t.Context(), clock)
			if !ok || key != want.key || clock().Round(time.Second) != want.at || stalled {
				t.Errorf("got %q at %v (stalled %v), want %q at %v", key, clock(), stalled, want.key, want.at)
			}
			if q.Pending(key) {
				t.Errorf("%q is pending after it was handed out", key)
			}
		}
	})
}

func TestAnEarlierTimeWakesWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		clock := func() time.Duration { return time.Since(begun) + 1 }
		q := alarm.New[int]()
		q.Set(1, time.Hour)
		got := make(chan int)
		go func() {
			key, _, _ := q.Wait(t.Context(), clock)
			got <- key
		}()
		synctest.Wait()
		q.Set(2, time.Second)
		if key := <-got; key != 2 || time.Since(begun) > 2*time.Second {
			t.Errorf("got %d after %v", key, time.Since(begun))
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, ok := alarm.New[int]().Wait(ctx, func() time.Duration { return 1 }); ok {
		t.Error("Wait returned a key of an empty queue")
	}
}

func TestAStandstillIsNoticed(t *testing.T) {
	t.Parallel()
	q := alarm.New[int]()
	q.Set(1, 10*time.Millisecond)
	var now time.Duration
	clock := func() time.Duration { now += 3 * time.Second; return now - 3*time.Second }
	if _, stalled, ok := q.Wait(t.Context(), clock); !ok || !stalled {
		t.Errorf("stalled %v, ok %v; the clock went on by seconds in a sleep of milliseconds", stalled, ok)
	}
}

func TestAnySettingsComeInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q, want := alarm.New[int](), map[int]time.Duration{}
		for range rapid.IntRange(0, 60).Draw(t, "settings") {
			key, at := rapid.IntRange(0, 9).Draw(t, "key"), time.Duration(rapid.IntRange(0, 20).Draw(t, "at"))
			q.Set(key, at)
			if want[key] = at; at == 0 {
				delete(want, key)
			}
		}
		var last time.Duration
		for range len(want) {
			key, _, ok := q.Next(100)
			if !ok || want[key] < last {
				t.Fatalf("got %d (at %v) after %v, ok %v", key, want[key], last, ok)
			}
			last = want[key]
			delete(want, key)
		}
		if key, _, ok := q.Next(100); ok || len(want) > 0 {
			t.Fatalf("got %d too many; left %v", key, slices.Collect(maps.Keys(want)))
		}
	})
}
