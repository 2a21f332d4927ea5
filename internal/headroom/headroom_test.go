package headroom_test

import (
	"context"
	"math"
	"runtime/debug"
	"testing"
	"time"

	"pgregory.net/rapid"

	"keryx/internal/headroom"
)

const mib = 1 << 20

func TestABurstIsLimitedByWhatWasAliveBeforeIt(t *testing.T) {
	t.Parallel()
	var l headroom.Limit
	for range headroom.Samples {
		l.Next(10*mib, 50)
	}
	for i := range headroom.Samples - 1 {
		if got := l.Next(80*mib, 50); got > 15*mib+headroom.Burst {
			t.Fatalf("at look %d of a burst the limit is %d MiB", i, got/mib)
		}
	}
	if got := l.Next(80*mib, 50); got < 119*mib+headroom.Burst {
		t.Errorf("after a window of it the limit is %d MiB", got/mib)
	}
}

func TestSteadyLoadIsNeverLimited(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l headroom.Limit
		percent := rapid.IntRange(0, 400).Draw(t, "percent")
		for range rapid.IntRange(0, 100).Draw(t, "looks before") {
			l.Next(rapid.Int64Range(0, 1<<40).Draw(t, "alive before"), percent)
		}
		live := rapid.Int64Range(0, 1<<40).Draw(t, "alive")
		limit := int64(0)
		for range headroom.Samples {
			limit = l.Next(live, percent)
		}
		if goal := live + live/100*int64(percent); limit < goal+headroom.Burst || limit > goal+headroom.Burst {
			t.Fatalf("the limit is %d, the collector's goal %d", limit, goal)
		}
	})
}

//nolint:paralleltest // the limit is that of the process
func TestTheLimitOfTheProcessIsSetAndTakenAway(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		headroom.Keep(ctx, 50)
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for debug.SetMemoryLimit(-1) == before {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("no limit was set")
		}
	}
	if got := debug.SetMemoryLimit(-1); got < headroom.Burst || got == math.MaxInt64 {
		t.Errorf("the limit is %d", got)
	}
	cancel()
	<-ended
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the limit stays at %d", got)
	}
}
