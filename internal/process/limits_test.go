package process_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/process"
)

func TestLimits_name_the_controllers_they_need(t *testing.T) {
	t.Parallel()
	all := process.Limits{CPUMilli: 500, MemoryBytes: 64 << 20, PIDs: 8}
	if got := all.Controllers(); !slices.Equal(got, []string{"cpu", "memory", "pids"}) {
		t.Errorf("all: %v", got)
	}
	if got := (process.Limits{}).Controllers(); len(got) != 0 {
		t.Errorf("none: %v", got)
	}
}

// TestLimits_hold_or_nothing_runs starts a tree that wants more processes than it may have.
// Where the controller acts it does not get them; where it does not, nothing is started.
func TestLimits_hold_or_nothing_runs(t *testing.T) {
	t.Parallel()
	g, err := process.OpenGroups("test-"+events.NewID(), "one")
	if err != nil && !errors.Is(err, process.ErrNoGroups) {
		t.Fatal(err)
	}
	if g != nil {
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	p, err := process.Start(context.Background(), process.Spec{
		Argv: []string{"/bin/sh", "-c", "for i in 1 2 3 4 5 6; do sleep 5 & done 2>/dev/null; wait"},
		Env:  []string{"PATH=/usr/bin:/bin"}, Groups: g, Group: "limited", Limits: &process.Limits{PIDs: 3}, Timeout: 20 * time.Second,
	})
	if !g.Enforces("pids") {
		if !errors.Is(err, process.ErrNoLimits) {
			t.Fatalf("without the controller: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	// The shell cannot fork a fourth process and ends with an error, long before 5 s.
	if end := p.Wait(); end.Code == 0 || end.Duration > 4*time.Second {
		t.Errorf("ended %+v", end)
	}
}
