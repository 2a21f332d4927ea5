package execution

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"keryx/client"
	"keryx/events"
	"keryx/internal/targets"
)

// tenants are the targets of an executor. Each, once declared, has goroutines until the
// end, so that a name is never held twice.
type tenants struct {
	bus     Bus
	cfg     Config
	keeper  *client.Keeper
	work    workload
	look    *examiner
	failed  chan error // size 1: the first that the bus will not have
	running sync.WaitGroup

	mu  sync.Mutex
	all map[events.TargetName]*tenancy
	// over are those that the bus will not have any more; nothing runs them.
	over map[events.TargetName]bool
}

func newTenants(bus Bus, cfg Config, work workload) *tenants {
	return &tenants{
		bus: bus, cfg: cfg, look: &examiner{cfg: cfg}, work: work, failed: make(chan error, 1), all: make(map[events.TargetName]*tenancy),
		over:   make(map[events.TargetName]bool),
		keeper: client.NewKeeper(client.KeeperConfig{Caller: bus, Instance: bus.Instance(), NATS: bus.NATS(), Logger: cfg.Logger}),
	}
}

// declare makes these all that is offered, until ctx ends. One that cannot be offered, e.g.
// because its user is unknown, leaves in force what was before; the errors say so.
func (ts *tenants) declare(ctx context.Context, all []targets.Declaration) (failed error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	declared := make(map[events.TargetName]bool, len(all))
	for _, d := range all {
		declared[d.Spec.Name] = true
		if err := ts.declareLocked(ctx, d); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	for name, t := range ts.all {
		if !declared[name] {
			t.want(nil, nil)
		}
	}
	return failed
}

func (ts *tenants) declareLocked(ctx context.Context, d targets.Declaration) error {
	t := ts.all[d.Spec.Name]
	o, err := newOffer(d.Spec)
	if err != nil {
		if t != nil {
			t.refuse(err)
		}
		return err
	}
	if t == nil {
		t = newTenancy(ts.bus, ts.cfg, ts.keeper, ts.look, ts.work, o.spec.Name)
		ts.all[o.spec.Name] = t
		ts.begin(ctx, t)
	}
	t.want(o, d.Broken)
	return nil
}

func (ts *tenants) begin(ctx context.Context, t *tenancy) {
	ts.running.Go(func() { t.watch(ctx) })
	ts.running.Go(func() {
		if err := t.run(ctx); err != nil {
			ts.fail(t, err)
		}
	})
}

// fail takes a target out for good. An executor goes on with the targets that it has left
// when one is taken away from it; whatever else the bus will not have ends it.
func (ts *tenants) fail(t *tenancy, err error) {
	ts.mu.Lock()
	ts.over[t.name] = true
	left := len(ts.all) - len(ts.over)
	ts.mu.Unlock()
	if left > 0 && events.CodeOf(err) == events.CodeLeaseRevoked {
		return
	}
	select {
	case ts.failed <- err:
	default: // one is enough to end the executor
	}
}

// find returns the tenancy of a target, or what an order for it is refused with.
func (ts *tenants) find(name events.TargetName) (*tenancy, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.all[name]; t != nil {
		return t, nil
	}
	return nil, notHeld(name)
}

// drop ends all holds without giving them back, so that from here on every start is
// refused, and returns what was held. The context of what was declared has ended.
func (ts *tenants) drop() map[*tenancy]*client.Held {
	ts.running.Wait()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	held := make(map[*tenancy]*client.Held, len(ts.all))
	for _, t := range ts.all {
		held[t] = t.drop()
	}
	return held
}

// leave withdraws all targets and gives their leases back.
func (ts *tenants) leave(ctx context.Context, held map[*tenancy]*client.Held, reason string) error {
	var leaving sync.WaitGroup
	failed := make(chan error, len(held))
	for t, h := range held {
		leaving.Go(func() { failed <- t.leave(ctx, h, reason) })
	}
	leaving.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}

// same reports whether two offers are of the same declaration.
func (o *offer) same(p *offer) bool { return p != nil && reflect.DeepEqual(o.spec, p.spec) }
