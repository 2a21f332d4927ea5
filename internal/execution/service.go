package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/process"
	"keryx/internal/targets"
)

// orderBuffer is how many orders may wait to be read.
const orderBuffer = 4096

// service runs the commands of its targets.
type service struct {
	bus     Bus
	cfg     Config
	tenants *tenants
	groups  *process.Groups // nil where there are none
	install *installer
	work    sync.WaitGroup // jobs and what they report

	mu    sync.Mutex
	jobs  map[events.ExecID]*job // running
	early map[events.ExecID][]frame
	ended map[events.ExecID]bool
	order []events.ExecID // of ended, oldest first

	spent spent
}

// Run offers a target until ctx ends; then it stops what runs, reports it, withdraws
// the target, releases its lease and returns nil, all within bounds. It returns an
// error when the target cannot be offered, or when something was left undone at the
// stop.
func Run(ctx context.Context, bus Bus, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return fmt.Errorf("run executor: %w", err)
	}
	s := &service{
		bus: bus, cfg: cfg,
		jobs: make(map[events.ExecID]*job), ended: make(map[events.ExecID]bool),
		early: make(map[events.ExecID][]frame),
	}
	s.tenants = newTenants(bus, cfg, s)
	s.install = newInstaller(s)
	if err := s.openGroups(); err != nil {
		return fmt.Errorf("run executor: %w", err)
	}
	defer s.closeGroups()
	s.tenants.look.groups = s.groups
	defer s.reap(ctx)()
	// Before the target is held: nobody is to meet there what a dead instance runs.
	lost := s.emptyFormer()
	orders := make(chan *nats.Msg, orderBuffer)
	p := bus.Principal()
	sub, err := bus.NATS().ChanSubscribe(events.ExecAll(p.Profile, p.Name, bus.Instance()), orders)
	if err != nil {
		return fmt.Errorf("run executor: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	typed := make(chan *nats.Msg, typedBuffer)
	typing, err := bus.NATS().ChanSubscribe(events.TTYTo(p.Profile, p.Name), typed)
	if err != nil {
		return fmt.Errorf("run executor: %w", err)
	}
	defer func() { _ = typing.Unsubscribe() }()
	defer s.takeTyped(ctx, typed)()
	// Keeping goes on while the executor stops, so that what it still reports counts.
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { s.tenants.keeper.Run(keeping) })
	defer keeper.Wait()
	defer stopKeeping()
	return s.serve(ctx, orders, lost)
}

// serve takes orders until ctx ends or a target cannot be held any more.
func (s *service) serve(ctx context.Context, orders <-chan *nats.Msg, lost []events.ReportLost) error {
	holding, letGo := context.WithCancel(ctx)
	defer letGo()
	if err := s.tenants.declare(holding, s.cfg.Targets); err != nil {
		letGo()
		s.tenants.running.Wait()
		return fmt.Errorf("run executor: %w", err)
	}
	// Jobs outlive ctx: they end by being stopped.
	working, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	s.work.Go(func() { s.reportLost(working, lost) })
	s.work.Go(func() { s.install.sweep(holding, working) })
	packaged := make(chan []targets.Declaration)
	s.work.Go(func() { s.install.followPackages(holding, packaged) })
	own, brought := s.cfg.Targets, []targets.Declaration(nil)
	for {
		select {
		case m := <-orders:
			s.take(working, m)
		case own = <-s.cfg.Changes:
			s.declare(holding, own, brought)
		case brought = <-packaged:
			s.declare(holding, own, brought)
		case err := <-s.tenants.failed:
			letGo()
			return errors.Join(fmt.Errorf("run executor: %w", err), s.stop(working, abandon, orders))
		case <-ctx.Done():
			letGo()
			return s.stop(working, abandon, orders)
		}
	}
}

// declare makes the executor's own targets and those of packages all that is offered.
func (s *service) declare(ctx context.Context, own, brought []targets.Declaration) {
	if err := s.tenants.declare(ctx, beside(own, brought)); err != nil {
		s.cfg.Logger.Error("what was declared cannot be offered; what was before stays", "error", err)
	}
}

// take reads an order.
func (s *service) take(ctx context.Context, m *nats.Msg) {
	p := s.bus.Principal()
	ctx = client.WithTrace(ctx, m.Header.Get(events.ExtTraceParent), m.Header.Get(events.ExtTraceState))
	var err error
	switch m.Subject {
	case events.ExecSubject(p.Profile, p.Name, s.bus.Instance(), events.ExecStart):
		var o events.StartOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			s.start(ctx, o)
		}
	case events.ExecSubject(p.Profile, p.Name, s.bus.Instance(), events.ExecStop):
		var o events.StopOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			s.stopOne(ctx, o)
		}
	case events.ExecSubject(p.Profile, p.Name, s.bus.Instance(), events.ExecControl):
		var o events.ControlOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			s.control(o)
		}
	case events.ExecSubject(p.Profile, p.Name, s.bus.Instance(), events.ExecRelease):
		var o events.ReleaseOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			s.release(o)
		}
	default:
		err = s.install.take(ctx, m)
	}
	if err != nil {
		s.cfg.Logger.Error("order cannot be read", "subject", m.Subject, "error", err)
	}
}

// start begins a job unless its order was seen before.
func (s *service) start(ctx context.Context, o events.StartOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := o.Request.Exec
	if s.jobs[id] != nil || s.ended[id] {
		return
	}
	j := &job{service: s, order: o, early: s.takeEarly(id), giveUp: make(chan struct{})}
	j.arrive() // here, where orders are in the order of their arrival
	s.jobs[id] = j
	s.work.Go(func() {
		defer s.forget(id)
		j.run(ctx)
	})
}

// forget moves a job to the ended ones, of which the newest are remembered.
func (s *service) forget(id events.ExecID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, id)
	s.rememberLocked(id)
}

func (s *service) rememberLocked(id events.ExecID) {
	s.ended[id] = true
	s.order = append(s.order, id)
	if len(s.order) > endedKept {
		delete(s.ended, s.order[0])
		s.order = s.order[1:]
	}
}

// stopOne stops a job. One whose start never came will not be started any more: that is
// reported, so that the exec does not stay open for ever.
func (s *service) stopOne(ctx context.Context, o events.StopOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[o.Exec]; j != nil {
		// Not in line: a job may hold its lock while the target is being registered.
		s.work.Go(func() { j.stopOrdered(duration(o.GraceMS)) })
		return
	}
	if s.ended[o.Exec] {
		return
	}
	s.rememberLocked(o.Exec)
	s.work.Go(func() { s.refuse(ctx, o.Session, o.Exec, errStopped) })
}

var errStopped = events.Errorf(events.CodeLaunchFailed, "stopped before it was launched")

func (s *service) refuse(ctx context.Context, session events.SessionID, id events.ExecID, why error) {
	fact := events.ExecRefused{Exec: id, Code: events.CodeLaunchFailed, Message: why.Error()}
	if e, ok := errors.AsType[*events.Error](why); ok {
		fact.Code, fact.Message = e.Code, e.Message
	}
	if message, hidden := s.cfg.Secrets.Current().Bytes([]byte(fact.Message)); hidden > 0 {
		fact.Message = string(message)
	}
	s.report(ctx, events.CmdExecReportRefused, id, events.ReportRefused{
		Session: session, Instance: s.bus.Instance(), Fact: fact,
	})
}

// stop ends the service: no more launches, what runs is stopped and reported, and the
// target is given back.
func (s *service) stop(ctx context.Context, abandon context.CancelCauseFunc, orders <-chan *nats.Msg) error {
	limit := time.AfterFunc(stopGrace+stopReports, func() { abandon(errStopTimeout) })
	defer limit.Stop()
	held := s.tenants.drop() // from here on every start is refused
	s.stopAll()
	s.install.stopAll()
	s.takeRest(ctx, orders)
	s.work.Wait()
	err := s.tenants.leave(context.WithoutCancel(ctx), held, "executor stopped")
	// Nobody is told to start anything after the target was withdrawn.
	s.takeRest(ctx, orders)
	s.work.Wait()
	return errors.Join(err, context.Cause(ctx))
}

func (s *service) takeRest(ctx context.Context, orders <-chan *nats.Msg) {
	for {
		select {
		case m := <-orders:
			s.take(ctx, m)
		default:
			return
		}
	}
}

func (s *service) stopAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		s.work.Go(j.stopSoon)
	}
}

var errStopTimeout = errors.New("executor stopped before all was reported")
