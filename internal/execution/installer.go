package execution

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// installer runs the setups of packages: one at a time per package.
type installer struct {
	service *service
	home    string        // empty: nothing is installed here
	changed chan struct{} // size 1: packages may have changed

	mu    sync.Mutex
	runs  map[events.RunID]*install
	ended map[events.RunID]bool // so that an order told again starts nothing
}

func newInstaller(s *service) *installer {
	return &installer{
		service: s, home: s.cfg.Home, changed: make(chan struct{}, 1), runs: make(map[events.RunID]*install), ended: make(map[events.RunID]bool),
	}
}

// take reads an order about setups and leaves others alone.
func (x *installer) take(ctx context.Context, m *nats.Msg) error {
	s := x.service
	p := s.bus.Principal()
	switch m.Subject {
	case events.ExecSubject(p.Profile, p.Name, s.bus.Instance(), events.ExecSetup):
		var o events.SetupOrder
		if err := json.Unmarshal(m.Data, &o); err != nil {
			return err
		}
		x.start(ctx, o.Plan)
	case events.ExecSubject(p.Profile, p.Name, s.bus.Instance(), events.ExecSetupStop):
		var o events.SetupStopOrder
		if err := json.Unmarshal(m.Data, &o); err != nil {
			return err
		}
		x.stop(ctx, o.Run)
	}
	return nil
}

// start begins a run unless its order was seen before.
func (x *installer) start(ctx context.Context, plan events.SetupPlan) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.runs[plan.Run] != nil || x.ended[plan.Run] {
		return
	}
	run := &install{installer: x, plan: plan, cancelled: make(chan struct{})}
	x.runs[plan.Run] = run
	x.service.work.Go(func() {
		defer x.forget(plan.Run)
		run.do(ctx)
	})
}

func (x *installer) forget(id events.RunID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.runs, id)
	x.ended[id] = true
}

// stop ends a run's tree. One whose start never came is reported, so that it does not
// stay open for ever.
func (x *installer) stop(ctx context.Context, id events.RunID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if run := x.runs[id]; run != nil {
		run.cancel()
		return
	}
	if x.ended[id] {
		return
	}
	x.ended[id] = true
	x.service.work.Go(func() {
		x.report(ctx, events.ReportSetupEnded{Run: id, Code: events.CodeSetupFailed, Message: errStopped.Message})
	})
}

// stopAll ends what runs because the executor stops.
func (x *installer) stopAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, run := range x.runs {
		run.cancel()
	}
}

// stopTarget ends the setups for a target that is no longer held: the bus has given them
// up, or will.
func (x *installer) stopTarget(name events.TargetName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, run := range x.runs {
		if run.plan.Target == name {
			run.cancel()
		}
	}
}

// fate is what becomes of what a run has made.
type fate int

const (
	fateDiscard fate = iota // the bus does not count it
	fateKeep                // the bus has it on record
	fateUnknown             // the bus did not say: it may have it on record
)

// report tells the end of a run until it is answered, and what becomes of its result.
func (x *installer) report(ctx context.Context, r events.ReportSetupEnded) fate {
	s := x.service
	r.Instance = s.bus.Instance()
	ctx, cancel := context.WithTimeout(ctx, reportFor)
	defer cancel()
	var verdict events.SetupVerdict
	err := insist(ctx, s.bus, s.cfg.Logger, events.CmdSetupReportEnded, r, &verdict)
	if err != nil {
		s.cfg.Logger.Error("report the end of a setup", "run", r.Run, "error", err)
	}
	_, refused := errors.AsType[*events.Error](err)
	switch {
	case err == nil && verdict.Keep:
		return fateKeep
	case err == nil || refused && !errors.Is(err, events.ErrOf(events.CodeTimeout)):
		return fateDiscard
	}
	return fateUnknown
}

// reporter tells the progress of a run, not too often: what is newer takes the place of
// what waits.
type reporter struct {
	installer *installer
	run       events.RunID

	wake chan struct{}

	mu      sync.Mutex
	fact    events.SetupProgressed
	changed bool
}

// progressPause is between two words on a run's progress: 5 a second at most, so that no
// setup floods the log.
const progressPause = 200 * time.Millisecond

func newReporter(x *installer, id events.RunID) *reporter {
	return &reporter{installer: x, run: id, wake: make(chan struct{}, 1), fact: events.SetupProgressed{Run: id}}
}

func (r *reporter) told(p events.SetupProgress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fact.Progress, r.changed = p, true
	signal(r.wake)
}

func (r *reporter) unreadable() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fact.Malformed++
	r.changed = true
	signal(r.wake)
}

// run tells until ctx ends; what waits then is told still.
func (r *reporter) tell(ctx context.Context, ended <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			r.send(ctx)
			return
		case <-r.wake:
		}
		r.send(ctx)
		select {
		case <-ctx.Done():
		case <-ended:
		case <-time.After(progressPause):
		}
	}
}

func (r *reporter) send(ctx context.Context) {
	r.mu.Lock()
	fact, changed := r.fact, r.changed
	r.changed = false
	r.mu.Unlock()
	if !changed {
		return
	}
	s := r.installer.service
	err := insist(ctx, s.bus, s.cfg.Logger, events.CmdSetupReportProgress, events.ReportProgress{Instance: s.bus.Instance(), Fact: fact}, nil)
	if err != nil && !errors.Is(err, events.ErrOf(events.CodeAlreadyEnded)) && ctx.Err() == nil {
		s.cfg.Logger.Warn("report the progress of a setup", "run", r.run, "error", err)
	}
}
