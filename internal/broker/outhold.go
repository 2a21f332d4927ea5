package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
)

const (
	// outFree is what the filesystem must have free, 64 MiB, for output to be stored; it is
	// stored again from outFreeAgain on. More than minFree is needed because output comes by
	// 130 MB/s and more (measured), and is looked at by spaceEvery.
	outFree      = 64 << 20
	outFreeAgain = 128 << 20
	// outMargin is how much output is stored all the same: it comes between the look at the
	// stream and the change of it, and must not push out what is there.
	outMargin = 8 << 20
	// holdWithin bounds one change of the stream.
	holdWithin = 5 * time.Second
)

// outputHold keeps output from filling a filesystem that the log needs. Executors publish
// output straight into the stream, so it is the stream that refuses it: their output waits
// in their spools meanwhile, and what never gets in is said at the end of the exec.
type outputHold struct {
	b    *Broker
	held bool
}

// look holds output back, or lets it in again. It is called by one goroutine.
func (h *outputHold) look(ctx context.Context, free uint64) {
	want := h.held
	switch {
	case free < outFree:
		want = true
	case free >= outFreeAgain:
		want = false
	}
	if want == h.held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, holdWithin)
	defer cancel()
	if err := h.set(ctx, want); err != nil {
		if ctx.Err() == nil {
			h.b.cfg.Logger.Error("hold output back", "hold", want, "error", err) // it is tried again
		}
		return
	}
	h.held = want
	h.b.cfg.Logger.Warn("output is held back while the filesystem is nearly full", "hold", want, "free_bytes", free)
}

func (h *outputHold) set(ctx context.Context, hold bool) error {
	nc, err := h.b.System("space")
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open stream API: %w", err)
	}
	cfg := outStream(budgetOf(h.b.cfg.MaxStore).out)
	if hold {
		s, err := js.Stream(ctx, events.StreamOut)
		if err != nil {
			return fmt.Errorf("look at stream %s: %w", events.StreamOut, err)
		}
		cfg.Discard = jetstream.DiscardNew
		cfg.MaxBytes = min(cfg.MaxBytes, int64(s.CachedInfo().State.Bytes)+outMargin) //nolint:gosec // below MaxBytes
	}
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("change stream %s: %w", events.StreamOut, err)
	}
	return nil
}
