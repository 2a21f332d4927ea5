package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"keryx/events"
	"keryx/internal/broker"
)

func TestRoomIsRefusedWhileTheFilesystemIsNearlyFullAndComesBack(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(1 << 30)
	b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir(), Private: true, Free: func() (uint64, error) { return free.Load(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []struct {
		free uint64
		want events.Code
	}{{1 << 30, ""}, {1 << 20, events.CodeStoreFull}, {0, events.CodeStoreFull}, {1 << 30, ""}} {
		free.Store(step.free)
		eventually(t, fmt.Sprintf("the answer with %d bytes free", step.free), func() bool {
			err := b.Room()
			return step.want == "" && err == nil || step.want != "" && errors.Is(err, events.ErrOf(step.want))
		})
	}
	select {
	case err := <-b.Failed():
		t.Errorf("a store without room has failed: %v", err)
	default:
	}
}
