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

// tenancy is the hold on the target: its lease, and its registration under it.
type tenancy struct {
	bus    Bus
	cfg    Config
	keeper *client.Keeper
	logger *slog.Logger

	mu       sync.RWMutex
	held     *client.Held // nil while not held
	selected events.Selection
}

const (
	holdPause  = 100 * time.Millisecond
	holdPauses = 2 * time.Second
)

func newTenancy(bus Bus, cfg Config) *tenancy {
	return &tenancy{bus: bus, cfg: cfg, logger: cfg.Logger, keeper: client.NewKeeper(client.KeeperConfig{
		Caller: bus, Instance: bus.Instance(), Logger: cfg.Logger,
	})}
}

// hold takes the lease and registers the target. While another instance has the lease
// it waits for it.
func (t *tenancy) hold(ctx context.Context) error {
	for pause := holdPause; ; pause = min(2*pause, holdPauses) {
		err := t.holdOnce(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err) && !errors.Is(err, events.ErrOf(events.CodeLeaseLost)):
			return fmt.Errorf("hold target %s: %w", t.cfg.Target.Name, err)
		}
		t.logger.Warn("target not held yet", "target", t.cfg.Target.Name, "error", err)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func (t *tenancy) holdOnce(ctx context.Context) error {
	key := events.LeaseKey{Profile: t.bus.Principal().Profile, Kind: events.LeaseTarget, Name: string(t.cfg.Target.Name)}
	held, err := t.keeper.Acquire(ctx, key, t.cfg.LeaseTTL)
	if err != nil {
		return err
	}
	// Orders under the new registration may come before its answer: they wait.
	t.mu.Lock()
	defer t.mu.Unlock()
	var sel events.Selection
	err = t.bus.Do(ctx, events.CmdTargetRegister, events.RegisterTarget{
		Spec: t.cfg.Target, Instance: t.bus.Instance(), LeaseFence: held.Fence(),
	}, &sel)
	if err != nil {
		held.Forget()
		return err
	}
	t.held, t.selected = held, sel
	t.logger.Info("target held", "target", sel.Target, "generation", sel.Generation, "fence", sel.LeaseFence)
	return nil
}

// keep takes the lease anew each time it is lost, until ctx ends. It returns an error
// when the bus will not have it.
func (t *tenancy) keep(ctx context.Context) error {
	for {
		t.mu.RLock()
		lost := t.held.Lost()
		t.mu.RUnlock()
		select {
		case <-ctx.Done():
			return nil
		case <-lost:
		}
		t.drop()
		if err := t.hold(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// drop ends the hold without giving it back, and returns what was held.
func (t *tenancy) drop() *client.Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held
	t.held = nil
	return held
}

// check refuses an order for what is not held now, or not as the order's sender saw it.
func (t *tenancy) check(o events.StartOrder) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.held == nil || !t.held.Valid() {
		return events.Errorf(events.CodeLeaseLost, "this executor does not hold target %s now", t.cfg.Target.Name)
	}
	if sel := o.Request.Selection; sel != t.selected {
		return events.Errorf(events.CodeStaleSelection,
			"target %s is at generation %d, fence %s; the order names %s, generation %d, fence %s",
			t.selected.Target, t.selected.Generation, t.selected.LeaseFence, sel.Target, sel.Generation, sel.LeaseFence)
	}
	return nil
}

// mayType refuses input while the target is not held, and input of another access epoch.
func (t *tenancy) mayType(o events.StartOrder, epoch uint64) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.held == nil || !t.held.Valid() {
		return events.Errorf(events.CodeLeaseLost, "this executor does not hold target %s now", t.cfg.Target.Name)
	}
	if epoch != t.selected.AccessEpoch {
		return events.Errorf(events.CodeStaleSelection, "target %s is at access epoch %d, the input is of %d",
			o.Request.Selection.Target, t.selected.AccessEpoch, epoch)
	}
	return nil
}

// leave withdraws the target and gives the lease back.
func (t *tenancy) leave(ctx context.Context, held *client.Held, reason string) error {
	if held == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopFarewell)
	defer cancel()
	err := t.bus.Do(ctx, events.CmdTargetWithdraw, events.WithdrawTarget{
		Name: t.cfg.Target.Name, Instance: t.bus.Instance(), Reason: reason,
	}, nil)
	return errors.Join(err, held.Release(ctx))
}
