package execution

import (
	"context"
	"fmt"
	"time"

	"keryx/client"
	"keryx/events"
)

// lossGrace is how long commands of a target that kills them at the loss of its lease
// have from TERM to KILL, at most; nobody else gets the target before.
const lossGrace = 5 * time.Second

// workload is what runs in targets.
type workload interface {
	// stopTarget stops the commands of a target that run, and does not wait for their end.
	stopTarget(name events.TargetName, why string)
	// reclaimTarget finds out which commands of a target the bus still counts as running,
	// and stops the others. It does not wait.
	reclaimTarget(ctx context.Context, name events.TargetName)
}

// kills reports whether commands end with their executor's hold on a target.
func kills(s events.TargetSpec) bool {
	return s.OnLeaseLoss == events.OnLeaseLossKill || (s.OnLeaseLoss == "" && s.Exclusive)
}

// terms are those on which the lease of a target is asked for.
func (t *tenancy) terms(o *offer) client.LeaseTerms {
	terms := client.LeaseTerms{TTL: t.ttl}
	if kills(o.spec) {
		terms.Grace = lossGrace
	}
	return terms
}

// lose ends a hold whose trust has ended: from here on nothing is started, typed or
// stopped on orders. What runs is stopped at once where the target says so, or where
// nobody would take it up again; else it runs until another holds the target.
func (t *tenancy) lose() {
	t.mu.RLock()
	last, wanted := t.last, t.wanted
	t.mu.RUnlock()
	t.former = t.drop()
	switch {
	case last != nil && kills(last.spec):
		t.work.stopTarget(t.name, "the lease of its target is lost")
	case wanted == nil:
		t.work.stopTarget(t.name, "the lease of its target is lost, and the target no longer declared")
	}
}

// refused takes the refusal of a lease. It returns it when it is final. If another has the
// target by now, what still runs in it is stopped; if it was taken away, that is given
// back once nothing runs any more.
func (t *tenancy) refused(ctx context.Context, err error) error {
	switch code := events.CodeOf(err); {
	case code == events.CodeLeaseHeld && t.former != nil:
		t.former = nil // told once
		t.work.stopTarget(t.name, "another holds its target: "+err.Error())
	case code == events.CodeLeaseRevoked:
		t.giveUp(ctx, err)
		return err
	case final(err) && code != events.CodeLeaseLost:
		return err
	}
	return nil
}

// giveUp stops what runs, waits for its end, and gives a revoked lease back, so that the
// next holder need not wait for the end of its time.
func (t *tenancy) giveUp(ctx context.Context, why error) {
	t.logger.Error("target taken away", "error", why)
	t.work.stopTarget(t.name, "its target was taken away: "+why.Error())
	for t.running() > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.wake:
		}
	}
	if t.former == nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopFarewell)
	defer cancel()
	if err := t.former.Release(ctx); err != nil {
		t.logger.Warn("give a revoked lease back", "error", err)
	}
}

func (t *tenancy) running() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.jobs
}

// trusted reports whether what runs in the target may be acted on now.
func (t *tenancy) trusted() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held != nil && t.held.Valid()
}

// pause waits, less if the bus writes something about the lease: it may be free.
func (t *tenancy) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// listen makes the bus's writes about the lease known to [tenancy.pause] until stop is
// called.
func (t *tenancy) listen() (stop func(), err error) {
	stop, err = client.WatchLease(t.bus.NATS(), t.key(), func(events.LeaseRecord) {
		select {
		case t.changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, fmt.Errorf("hold target %s: %w", t.name, err)
	}
	return stop, nil
}

func (t *tenancy) key() events.LeaseKey {
	return events.LeaseKey{Profile: t.bus.Principal().Profile, Kind: events.LeaseTarget, Name: string(t.name)}
}

// in returns the jobs of a target.
func (s *service) in(name events.TargetName) []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*job
	for _, j := range s.jobs {
		if j.order.Request.Selection.Target == name {
			out = append(out, j)
		}
	}
	return out
}

// stopTarget implements workload.
func (s *service) stopTarget(name events.TargetName, why string) {
	s.install.stopTarget(name)
	for _, j := range s.in(name) {
		s.cfg.Logger.Warn("command stopped", "exec", j.order.Request.Exec, "target", name, "reason", why)
		s.work.Go(j.stopSoon)
	}
}

// reclaimTarget implements workload.
func (s *service) reclaimTarget(ctx context.Context, name events.TargetName) {
	s.install.stopTarget(name) // the bus gave setups up with the hold
	for _, j := range s.in(name) {
		s.work.Go(func() { j.reclaim(ctx) })
	}
}

// reclaim goes on with a command after the hold on its target was lost and got back: the
// bus says whether it still counts it as running. A stop that was asked for meanwhile is
// done now.
func (j *job) reclaim(ctx context.Context) {
	j.mu.Lock()
	proc, asked := j.proc, j.deferred
	j.deferred = nil
	j.mu.Unlock()
	if proc == nil || isDone(proc.Done()) {
		return
	}
	s, id := j.service, j.order.Request.Exec
	err := insist(ctx, s.bus, s.cfg.Logger, events.CmdExecReportStarted, j.started(), nil)
	switch {
	case events.CodeOf(err) == events.CodeAlreadyEnded:
		s.cfg.Logger.Warn("command stopped", "exec", id, "reason", "the bus had given it up", "error", err)
		j.stopSoon()
	case err != nil:
		s.cfg.Logger.Warn("ask for a command", "exec", id, "error", err)
	case asked != nil:
		j.stop(asked.grace)
	default:
		s.cfg.Logger.Info("command goes on", "exec", id)
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stopOrder is a stop that could not be done when it was ordered.
type stopOrder struct{ grace *time.Duration }

// stopOrdered stops the process on somebody's order, which needs the target: past the
// end of trust nothing is signalled. The order waits for the hold to come back.
func (j *job) stopOrdered(grace *time.Duration) {
	j.mu.Lock()
	if j.proc != nil && !j.tenancy.trusted() {
		j.deferred = &stopOrder{grace}
		j.mu.Unlock()
		j.service.cfg.Logger.Warn("stop put off: the target is not held now", "exec", j.order.Request.Exec)
		return
	}
	j.mu.Unlock()
	j.stop(grace)
}
