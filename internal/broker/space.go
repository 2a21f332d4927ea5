package broker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"keryx/events"
)

const (
	// minFree is what the filesystem of the store must have free, 8 MiB, before anything
	// that begins is taken. What ends, and leases, may use it up.
	minFree = 8 << 20
	// spaceEvery is how often the filesystem is asked.
	spaceEvery = 250 * time.Millisecond
)

// space watches whether the store can be written. After a failed write the server's
// stream stays closed to writing, also once the cause has gone (measured on 2.15.3), so
// that alone is an end: only another start helps.
type space struct {
	free   func() (uint64, error)
	health func() *server.HealthStatus
	dir    string
	output *outputHold // used by run alone

	full   atomic.Pointer[events.Error]
	failed chan error // one value
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func watchSpace(b *Broker) *space {
	ctx, cancel := context.WithCancel(context.Background())
	s := &space{dir: b.cfg.Dir, free: b.cfg.Free, output: &outputHold{b: b}, health: func() *server.HealthStatus {
		return b.server.Healthz(&server.HealthzOptions{})
	}, failed: make(chan error, 1), cancel: cancel}
	s.look()
	s.done.Go(func() { s.run(ctx) })
	return s
}

func (s *space) close() {
	s.cancel()
	s.done.Wait()
}

func (s *space) run(ctx context.Context) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if free, known := s.look(); known {
			s.output.look(ctx, free)
		}
		if err := s.broken(); err != nil && ctx.Err() == nil {
			s.failed <- err
			return
		}
	}
}

// look notes whether there is room. A filesystem that does not say is trusted.
func (s *space) look() (free uint64, known bool) {
	free, err := s.free()
	if err != nil || free >= minFree {
		s.full.Store(nil)
		return free, err == nil
	}
	s.full.Store(events.Errorf(events.CodeStoreFull,
		"the filesystem of %s has %d KiB free; nothing new is taken below %d", s.dir, free>>10, minFree>>10))
	return free, true
}

// broken says why the store cannot be written until another start; nil while it can.
func (s *space) broken() error {
	h := s.health()
	if h.StatusCode == 200 {
		return nil
	}
	if full := s.full.Load(); full != nil {
		return fmt.Errorf("the store failed to write, start again once there is room: %w", full)
	}
	return events.Errorf(events.CodeInternal, "the store failed, start again: %s", h.Error)
}

// freeOf returns the bytes that the filesystem of a directory has for its user.
func freeOf(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("ask the filesystem of %s: %w", dir, err)
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil //nolint:gosec // neither is negative
}

// Room returns nil, or an *[events.Error] with code store_full while the filesystem has
// so little left that nothing new should begin. It is a look at a quarter of a second
// ago at most, and costs nothing.
func (b *Broker) Room() error {
	if full := b.space.full.Load(); full != nil {
		return full
	}
	return nil
}

// Failed delivers one error when the store cannot be written any more by this process,
// with code store_full if the filesystem was full. Nothing that was answered is lost;
// the broker has to be stopped and started again.
func (b *Broker) Failed() <-chan error { return b.space.failed }
