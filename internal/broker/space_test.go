package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
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

func TestOutputIsNotStoredWhileTheFilesystemIsNearlyFull(t *testing.T) {
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
	nc := bustest.System(t, b)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stored := func() (msgs, first uint64) {
		s, err := js.Stream(t.Context(), events.StreamOut)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.Msgs, s.CachedInfo().State.FirstSeq
	}
	flood := func(exec string) {
		for range 1200 { // 75 MiB, more than is kept of one exec
			if err := nc.Publish("kx.out.p.ex.S."+exec, make([]byte, 64<<10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.FlushTimeout(30 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Publish("kx.out.p.ex.S.quiet", []byte("first")); err != nil {
		t.Fatal(err)
	}
	flood("one")
	eventually(t, "the first flood to be stored", func() bool { n, _ := stored(); return n == 1+broker.OutPerExec })
	discard := func(want jetstream.DiscardPolicy) func() bool {
		return func() bool {
			s, err := js.Stream(t.Context(), events.StreamOut)
			return err == nil && s.CachedInfo().Config.Discard == want
		}
	}
	free.Store(48 << 20)
	eventually(t, "output to be held back", discard(jetstream.DiscardNew))
	if err := b.Room(); err != nil {
		t.Errorf("output is held back, and with it all else: %v", err)
	}
	flood("two")
	if n, first := stored(); n > 1+broker.OutPerExec+130 || first != 1 {
		t.Errorf("%d messages are stored, from %d on", n, first)
	}
	free.Store(96 << 20) // not enough to begin again
	flood("three")
	if n, _ := stored(); n > 1+broker.OutPerExec+130 {
		t.Errorf("%d messages are stored", n)
	}
	free.Store(1 << 30)
	eventually(t, "output to be let in", discard(jetstream.DiscardOld))
	flood("four")
	eventually(t, "the last flood to be stored", func() bool { n, first := stored(); return n >= 1+2*broker.OutPerExec && first == 1 })
}
