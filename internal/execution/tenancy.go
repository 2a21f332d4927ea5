package execution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"keryx/client"
	"keryx/events"
)

// tenancy is the hold on one target: its lease, and its registration under it. Its
// goroutine, [tenancy.run], alone takes, registers and withdraws; others say what is
// wanted, and ask.
type tenancy struct {
	name   events.TargetName
	bus    Bus
	home   string
	ttl    time.Duration
	keeper *client.Keeper
	work   workload
	look   *examiner
	logger *slog.Logger
	wake   chan struct{} // size 1, coalesces: something is to be looked at
	// changed says that the bus wrote something about the lease. Size 1, coalesces.
	changed chan struct{}
	// former is the hold that was lost, until it is known what became of the target. It
	// belongs to run's goroutine.
	former  *client.Held
	granted client.LeaseTerms // of the hold; run's goroutine's as well

	mu       sync.RWMutex
	held     *client.Held // nil while not held
	selected events.Selection
	current  *offer    // registered under selected; nil while there is none
	last     *offer    // registered last
	wanted   *offer    // to be registered; nil once the target is no longer declared
	jobs     int       // commands that run in it
	claim    *claim    // who has it to itself
	found    condition // of what is current
	broken   *events.Error
	told     events.TargetCondition // what the bus knows of current
	asked    time.Time              // when the bus was asked who has control
}

const (
	holdPause  = 100 * time.Millisecond
	holdPauses = 2 * time.Second
	// tendAgain is the pause before what the bus did not take is told again.
	tendAgain = time.Second
)

func newTenancy(bus Bus, cfg Config, keeper *client.Keeper, look *examiner, work workload, name events.TargetName) *tenancy {
	return &tenancy{
		name: name, bus: bus, home: cfg.Home, ttl: cfg.LeaseTTL, keeper: keeper,
		look: look, work: work, logger: cfg.Logger.With("target", name),
		wake: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
}

// want says what is to be offered from now on, nil for nothing, and why it is not what was
// declared last. What is offered already stays as it is.
func (t *tenancy) want(o *offer, broken *events.Error) {
	t.mu.Lock()
	if o == nil || !o.same(t.wanted) {
		t.wanted = o
	}
	t.broken = broken
	t.mu.Unlock()
	t.kick()
}

// refuse says why what was declared last cannot be offered.
func (t *tenancy) refuse(why error) {
	t.mu.Lock()
	t.broken = events.Errorf(events.CodeInvalid, "%v", why)
	t.mu.Unlock()
	t.kick()
}

func (t *tenancy) kick() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run keeps what is held at what is wanted, until ctx ends; then it leaves all as it is.
// It returns an error when the bus will not have the target.
func (t *tenancy) run(ctx context.Context) error {
	stop, err := t.listen()
	if err != nil {
		return err
	}
	defer stop()
	var followers sync.WaitGroup
	defer followers.Wait()
	for ctx.Err() == nil {
		if err := t.advance(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("hold target %s: %w", t.name, err)
		}
		t.await(ctx, t.tend(ctx, &followers))
	}
	return nil
}

// tend does what is owed of a target that is held: claims, and what is known of it. It
// returns when to try again what failed; zero for not at all.
func (t *tenancy) tend(ctx context.Context, followers *sync.WaitGroup) (again time.Duration) {
	err := errors.Join(t.tendClaim(ctx, followers), t.reportCondition(ctx))
	if err == nil || ctx.Err() != nil {
		return 0
	}
	t.logger.Warn("tell the bus of the target", "error", err)
	return tendAgain
}

// advance brings what is held to what is wanted.
func (t *tenancy) advance(ctx context.Context) error {
	t.mu.RLock()
	held, current, wanted, jobs := t.held, t.current, t.wanted, t.jobs
	t.mu.RUnlock()
	switch {
	case wanted != nil && (held == nil || current != wanted):
		return t.hold(ctx)
	case wanted != nil || held == nil:
		return nil
	case current != nil:
		return t.withdraw(ctx, "no longer declared")
	case jobs == 0:
		return t.drop().Release(ctx)
	}
	return nil
}

// await waits until there may be something to do, or for so long.
func (t *tenancy) await(ctx context.Context, again time.Duration) {
	var due <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		due = timer.C
	}
	t.mu.RLock()
	var lost <-chan struct{}
	if t.held != nil {
		lost = t.held.Lost()
	}
	t.mu.RUnlock()
	select {
	case <-ctx.Done():
	case <-t.wake:
	case <-due:
	case <-lost:
		t.lose()
	}
}

// hold takes the lease and registers the target. While another instance has the lease
// it waits for it.
func (t *tenancy) hold(ctx context.Context) error {
	for pause := holdPause; ; pause = min(2*pause, holdPauses) {
		err := t.holdOnce(ctx)
		if err == nil {
			t.regained(ctx)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.refused(ctx, err); err != nil {
			return err
		}
		t.logger.Warn("target not held yet", "error", err)
		if err := t.pause(ctx, pause); err != nil {
			return err
		}
	}
}

// regained goes on with what ran under a hold that was lost.
func (t *tenancy) regained(ctx context.Context) {
	if t.former != nil {
		t.former = nil
		t.work.reclaimTarget(ctx, t.name)
	}
}

func (t *tenancy) holdOnce(ctx context.Context) error {
	held, wanted, err := t.acquire(ctx)
	if err != nil || wanted == nil {
		return err
	}
	found := t.look.condition(ctx, wanted)
	// Orders under the new registration may come before its answer: they wait.
	t.mu.Lock()
	defer t.mu.Unlock()
	told := found.with(t.broken)
	var sel events.Selection
	err = t.bus.Do(ctx, events.CmdTargetRegister, events.RegisterTarget{
		Spec: t.registered(wanted), Instance: t.bus.Instance(), LeaseFence: held.Fence(), TargetCondition: told,
	}, &sel)
	if err != nil {
		held.Forget()
		t.held, t.current = nil, nil
		return err
	}
	t.held, t.selected, t.current, t.last = held, sel, wanted, wanted
	t.found, t.told = found, told
	if t.claim != nil {
		t.claim.retell = true
	}
	t.logger.Info("target held", "generation", sel.Generation, "fence", sel.LeaseFence)
	return nil
}

// registered is what an offer is registered as: with where this executor installs packages.
func (t *tenancy) registered(o *offer) events.TargetSpec {
	spec := o.spec
	spec.Home = t.home
	return spec
}

// acquire returns the lease, taking it if it is not held on the terms of what is wanted, and
// what that is.
func (t *tenancy) acquire(ctx context.Context) (*client.Held, *offer, error) {
	t.mu.RLock()
	held, wanted := t.held, t.wanted
	t.mu.RUnlock()
	if wanted == nil || (held != nil && t.granted == t.terms(wanted)) {
		return held, wanted, nil
	}
	terms := t.terms(wanted)
	now, err := t.keeper.Acquire(ctx, t.key(), terms)
	if err != nil {
		return nil, wanted, err
	}
	t.granted = terms
	if held != nil { // the same hold on other terms
		t.mu.Lock()
		t.held = now
		t.mu.Unlock()
	}
	return now, wanted, nil
}

// withdraw takes the registration back and keeps the lease: nobody else is to have the
// target while commands run in it.
func (t *tenancy) withdraw(ctx context.Context, reason string) error {
	t.mu.Lock()
	t.current = nil
	t.forgetLocked()
	t.mu.Unlock()
	t.logger.Info("target withdrawn", "reason", reason)
	t.kick()
	return insist(ctx, t.bus, t.logger, events.CmdTargetWithdraw, events.WithdrawTarget{
		Name: t.name, Instance: t.bus.Instance(), Reason: reason,
	}, nil)
}

// drop ends the hold without giving it back, and returns what was held.
func (t *tenancy) drop() *client.Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held
	t.held, t.current = nil, nil
	return held
}

// offered returns what an order is for, if that is still what is offered.
func (t *tenancy) offered(ctx context.Context, o events.StartOrder) (*offer, error) {
	t.learn(ctx, o.Request.Selection.AccessEpoch)
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.current, t.checkLocked(o)
}

// begin counts a command in, right before its launch, if its order is for what is held
// now, as the order's sender saw it. [tenancy.end] counts it out.
func (t *tenancy) begin(o events.StartOrder) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkLocked(o); err != nil {
		return err
	}
	t.jobs++
	return nil
}

func (t *tenancy) end() {
	t.mu.Lock()
	t.jobs--
	t.mu.Unlock()
	t.kick()
}

func (t *tenancy) checkLocked(o events.StartOrder) error {
	if t.current == nil || t.held == nil || !t.held.Valid() {
		return notHeld(t.name)
	}
	sel := o.Request.Selection
	if sel.Controller = t.selected.Controller; sel != t.selected {
		return events.Errorf(events.CodeStaleSelection,
			"target %s is at generation %d, fence %s, access epoch %d; the order names %s, generation %d, fence %s, access epoch %d",
			t.selected.Target, t.selected.Generation, t.selected.LeaseFence, t.selected.AccessEpoch,
			sel.Target, sel.Generation, sel.LeaseFence, sel.AccessEpoch)
	}
	return nil
}

func notHeld(name events.TargetName) error {
	return events.Errorf(events.CodeLeaseLost, "this executor does not hold target %s now", name)
}

// leave withdraws the target and gives the lease back.
func (t *tenancy) leave(ctx context.Context, held *client.Held, reason string) error {
	if held == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopFarewell)
	defer cancel()
	err := t.bus.Do(ctx, events.CmdTargetWithdraw, events.WithdrawTarget{
		Name: t.name, Instance: t.bus.Instance(), Reason: reason,
	}, nil)
	return errors.Join(err, held.Release(ctx))
}
