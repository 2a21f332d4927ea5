package authority

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"keryx/events"
	"keryx/internal/alarm"
	"keryx/internal/leases"
	"keryx/internal/snapshot"
)

// drainBound is how long a stop waits for commands already taken.
const drainBound = 5 * time.Second

// flushBound is how long the server, in this process, may take to confirm.
const flushBound = 5 * time.Second

// readers is how many reads run at once; more wait, in order, in the intake.
const readers = 16

// term is one period of being active. Its memory is a projection of the log and is
// thrown away at the end.
type term struct {
	cfg    Config
	logger *slog.Logger

	sessions *sessionIndex
	profiles *profileIndex
	accounts *accountIndex
	// beside are the scopes that are to be loaded, but for sessions; nil after the start.
	beside  map[events.Profile]map[events.Scope]bool
	limits  *limits
	wakeups *alarm.Queue[*lane] // on the wall clock, as the times in the log are
	granter *leases.Granter

	// work ends after the drain, or at once when the lease was lost.
	work     context.Context
	stopWork context.CancelFunc
	lanes    *group // lane goroutines
	services *group // scheduler, granter, reads
	reads    *semaphore.Weighted
	imports  *importer
	intake   *nats.Subscription
	gatherer *gatherer
	frontier frontier
	snaps    *snapshot.Store
	index    *snapshot.Index
	rewrite  atomic.Bool // the kept index has what must not be kept
	begun    time.Time
}

func newTerm(cfg Config) (*term, error) {
	t := &term{
		cfg: cfg, logger: cfg.Logger,
		sessions: newSessionIndex(), wakeups: alarm.New[*lane](),
		limits: newLimits(cfg.CommandRate), reads: semaphore.NewWeighted(readers),
		lanes: newGroup(), services: newGroup(), begun: time.Now(),
	}
	t.profiles = newProfileIndex(t)
	t.accounts = newAccountIndex(t)
	t.imports = newImporter(t)
	t.work, t.stopWork = context.WithCancel(context.Background())
	t.gatherer = newGatherer(t.work, cfg.Log, t.services.start)
	var err error
	t.granter, err = leases.NewGranter(cfg.Leases, leases.Config{
		Generation: cfg.Generation, Logger: cfg.Logger, OnExpired: t.leaseExpired,
	})
	if err != nil {
		t.stopWork()
		return nil, fmt.Errorf("make lease granter: %w", err)
	}
	return t, nil
}

// start resumes what is owed and begins to take commands.
func (t *term) start(ctx context.Context) error {
	if err := t.granter.Load(ctx); err != nil {
		return fmt.Errorf("load leases: %w", err)
	}
	if !t.cfg.Offline {
		t.services.start(t.runWakeups)
		t.services.start(t.runGranter)
		t.services.start(t.runSweeps)
		t.services.start(t.runCheckpoints)
		if t.cfg.Retain > 0 {
			t.services.start(t.runRetention)
		}
		t.resumeForgotten()
		t.resume(ctx)
	}
	sub, err := t.cfg.Conn.Subscribe(events.PatternCmd, t.take)
	if err != nil {
		return fmt.Errorf("subscribe to commands: %w", err)
	}
	t.intake = sub
	if err := sub.SetPendingLimits(64<<10, 256<<20); err != nil {
		return fmt.Errorf("set the intake's limits: %w", err)
	}
	if err := t.cfg.Conn.FlushTimeout(flushBound); err != nil {
		return fmt.Errorf("confirm the subscription: %w", err)
	}
	return nil
}

// runWakeups wakes lanes at the times they asked for.
func (t *term) runWakeups() {
	for {
		l, _, ok := t.wakeups.Wait(t.work, func() time.Duration { return wall(time.Now()) })
		if !ok {
			return
		}
		l.add(0, func(ctx context.Context) { l.awake(ctx) }) // and then settles
	}
}

// wake asks for a look at a lane at a time, in place of the one asked for before; the
// zero time asks for none.
func (t *term) wake(l *lane, at time.Time) {
	if at.IsZero() {
		t.wakeups.Set(l, 0)
		return
	}
	t.wakeups.Set(l, wall(at))
}

// uptime is the term's own clock.
func (t *term) uptime() time.Duration { return time.Since(t.begun) }

func wall(at time.Time) time.Duration { return time.Duration(at.UnixNano()) }

func (t *term) runGranter() {
	if err := t.granter.Run(t.work); err != nil && t.work.Err() == nil {
		t.logger.Error("lease granter ended", "error", err)
	}
}

// stop ends the term: no new commands, those taken are finished (bounded), and after
// a clean stop sessions of that lifetime are finalized and the index is written.
func (t *term) stop(ctx context.Context, clean bool) {
	if t.intake != nil {
		if err := t.intake.Unsubscribe(); err != nil {
			t.logger.Warn("end the intake", "error", err)
		}
	}
	if clean {
		t.busStopped()
		t.waitLanes(drainBound)
	}
	t.stopWork()
	t.lanes.close()
	t.services.close()
	if clean && t.index != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainBound)
		defer cancel()
		t.checkpointNow(ctx)
	}
}

func (t *term) waitLanes(bound time.Duration) {
	done := make(chan struct{})
	go func() { t.lanes.wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(bound):
		t.logger.Warn("commands were still running at the stop", "bound", bound)
		t.stopWork()
		<-done
	}
}
