package execution

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/process"
)

// job is one command from its order to its last report.
type job struct {
	service *service
	order   events.StartOrder
	offer   *offer // set at the launch
	spool   *spool
	veil    *veil
	giveUp  chan struct{} // closed by a stop before the launch

	// Set by arrive.
	tenancy *tenancy
	claim   *claim // of an exclusive target
	refused error

	mu      sync.Mutex
	proc    *process.Process // nil until launched
	stopped bool             // asked for before the launch
	early   []frame          // typed before the launch
	// deferred is a stop that was ordered while the target was not held.
	deferred *stopOrder
}

// run launches the command and sees it to its end. ctx ends only when the service gives
// up reporting.
func (j *job) run(ctx context.Context) {
	s, id := j.service, j.order.Request.Exec
	j.spool = newSpool(ring{dir: s.cfg.SpoolDir, size: s.cfg.SpoolBytes, free: s.cfg.Free}, process.Streams(j.order.Request.Spec.PTY != nil), s.cfg.Logger)
	defer j.spool.close()
	j.veil = newVeil(s.cfg.Secrets, j.order.Request.Spec.PTY != nil, j.spool.write)
	if size := j.size(); size != nil {
		j.spool.resize(*size)
	}
	if j.tenancy != nil {
		defer j.tenancy.depart(j.claim)
	}
	if err := j.launch(ctx); err != nil {
		s.cfg.Logger.Info("exec refused", "exec", id, "error", err)
		s.refuse(ctx, j.order.Session, id, err)
		return
	}
	defer j.tenancy.end()
	var telling sync.WaitGroup
	telling.Go(func() { j.reportStarted(ctx) })
	kept, err := j.stream(ctx)
	if err != nil {
		s.cfg.Logger.Error("send output", "exec", id, "error", err)
	}
	if !j.ended(ctx) {
		s.cfg.Logger.Error("exec given up before its end", "exec", id, "pid", j.proc.PID())
		return
	}
	telling.Wait() // a start is told before its end
	j.reportExited(ctx, kept)
}

// arrive finds the target that the order is for, and has it for the session if it is an
// exclusive one.
func (j *job) arrive() {
	if j.tenancy, j.refused = j.service.tenants.find(j.order.Request.Selection.Target); j.refused == nil {
		j.claim, j.refused = j.tenancy.arrive(j.order)
	}
}

// launch starts the process if the order still holds.
func (j *job) launch(ctx context.Context) error {
	if j.refused != nil {
		return j.refused
	}
	spec, err := j.prepare(ctx) // unlocked: it takes its time, and a stop ends it
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped {
		return errStopped
	}
	if err != nil {
		return err
	}
	// The last thing before the launch: what is not held now must not act.
	if err := j.tenancy.begin(j.order); err != nil {
		return err
	}
	if err := j.execute(ctx, spec); err != nil {
		j.tenancy.end()
		return err
	}
	for _, f := range j.early {
		j.apply(ctx, f)
	}
	j.early = nil
	return nil
}

// prepare makes sure that the target can be used, and says what to run.
func (j *job) prepare(ctx context.Context) (process.Spec, error) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-j.giveUp:
			cancel()
		case <-ctx.Done():
		}
	})
	o, err := j.tenancy.offered(ctx, j.order)
	if err != nil {
		return process.Spec{}, err
	}
	j.offer = o
	if err := j.tenancy.ready(ctx, o); err != nil {
		return process.Spec{}, err
	}
	if err := j.tenancy.attached(ctx, j.claim); err != nil {
		return process.Spec{}, err
	}
	target, err := o.forSession(j.order.Session)
	if err != nil {
		return process.Spec{}, err
	}
	return j.spec(o, target)
}

// execute starts the process, if it needs no approval or has one.
func (j *job) execute(ctx context.Context, spec process.Spec) error {
	if err := j.service.approve(j.order, j.offer.spec); err != nil {
		return err
	}
	// Not ctx itself: its end is no reason to stop the process behind our back.
	proc, err := process.Start(context.WithoutCancel(ctx), spec)
	if errors.Is(err, process.ErrInvalid) {
		return events.Errorf(events.CodeInvalid, "%v", err)
	}
	if err != nil {
		return events.Errorf(events.CodeLaunchFailed, "%v", err)
	}
	j.proc = proc
	return nil
}

// spec says what to run. Its errors refuse the order.
func (j *job) spec(o *offer, target events.TargetSpec) (process.Spec, error) {
	s, ask := j.service, j.order.Request.Spec
	dir := ask.Cwd
	if dir == "" {
		dir = target.Cwd
	}
	if len(ask.Argv) == 0 || ask.Argv[0] == "" {
		return process.Spec{}, events.Errorf(events.CodeInvalid, "argv is empty or begins with an empty string")
	}
	argv := slices.Concat(target.CommandPrefix, ask.Argv)
	env := compose(s.cfg.Environ, o.account, target, s.bus.Principal().Profile, j.order)
	if ask.Login {
		set, unset := promised(env, target, ask)
		var err error
		if argv, err = loginShell(target.Shell, argv, env, set, unset, dir); err != nil {
			return process.Spec{}, err
		}
	}
	return process.Spec{
		Argv: argv, Dir: dir, Stdin: ask.Stdin, Output: j.veil.write, Env: entries(env), User: o.account.switches(),
		Terminal: j.size(),
		Timeout:  time.Duration(ask.TimeoutMS) * time.Millisecond, Grace: duration(ask.GraceMS),
		Limits: s.tenants.look.limits(o),
		Mark:   mark(j.order.Request.Exec), Groups: s.groups, Group: leafName(j.order),
	}, nil
}

// size is the size of the command's terminal at its start: what was asked for last.
func (j *job) size() *process.Size {
	size := j.order.Request.Spec.PTY
	if size == nil {
		return nil
	}
	return &process.Size{Rows: size.Rows, Cols: size.Cols}
}

// duration reads optional milliseconds.
func duration(ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	d := time.Duration(*ms) * time.Millisecond
	return &d
}

// stream sends the output while it comes and returns the chunks that the bus has kept.
func (j *job) stream(ctx context.Context) ([]chunk, error) {
	var ending sync.WaitGroup
	ending.Go(func() {
		if j.ended(ctx) {
			j.veil.end()
			j.spool.end()
		}
	})
	defer ending.Wait()
	out := newSender(j.service.bus, j.spool, j.order.Session, j.order.Request.Exec, j.service.cfg.Logger)
	if err := out.run(ctx); err != nil {
		return nil, err
	}
	return out.settle(ctx)
}

// ended waits for the end of the process; false when ctx ended before.
func (j *job) ended(ctx context.Context) bool {
	select {
	case <-j.proc.Done():
		return true
	case <-ctx.Done():
	}
	select {
	case <-j.proc.Done(): // both at once: the end counts
		return true
	default:
		return false
	}
}

// stop stops the process, or keeps it from being launched.
func (j *job) stop(grace *time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.proc == nil {
		if !j.stopped {
			close(j.giveUp)
		}
		j.stopped = true
		return
	}
	if err := j.proc.Stop(grace); err != nil {
		j.service.cfg.Logger.Warn("stop refused", "exec", j.order.Request.Exec, "error", err)
	}
}

// stopSoon stops the process within the time that the executor itself has.
func (j *job) stopSoon() {
	grace := stopGrace
	if own := duration(j.order.Request.Spec.GraceMS); own != nil && *own < grace {
		grace = *own
	}
	j.stop(&grace)
}

func (j *job) reportStarted(ctx context.Context) {
	j.service.report(ctx, events.CmdExecReportStarted, j.order.Request.Exec, j.started())
}

func (j *job) started() events.ReportStarted {
	return events.ReportStarted{
		Session: j.order.Session, Instance: j.service.bus.Instance(), LeaseFence: j.order.Request.Selection.LeaseFence,
		Fact: events.ExecStarted{Exec: j.order.Request.Exec, PID: j.proc.PID()},
	}
}

func (j *job) reportExited(ctx context.Context, kept []chunk) {
	end := j.proc.Wait()
	j.service.report(ctx, events.CmdExecReportExited, j.order.Request.Exec, events.ReportExited{
		Session: j.order.Session, Instance: j.service.bus.Instance(),
		Fact: events.ExecExited{
			Exec: j.order.Request.Exec, ExitCode: end.Code, Signal: end.Signal, TimedOut: end.TimedOut,
			Stopped: end.Stopped, DurationMS: end.Duration.Milliseconds(), Streams: j.streams(kept),
			Cleanup: end.Cleanup, LeftPIDs: end.LeftPIDs,
		},
	})
}

// streams says what was written, and what was taken out of it.
func (j *job) streams(kept []chunk) []events.StreamSummary {
	out := j.spool.summary(kept)
	for i := range out {
		out[i].Redacted = j.veil.count(out[i].Name)
	}
	return out
}
