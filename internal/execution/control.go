package execution

import (
	"context"
	"time"

	"keryx/events"
)

const (
	// learnPause is how often the bus is asked at most who has control of the target, and
	// learnFor how long for: typing waits for both.
	learnPause = 50 * time.Millisecond
	learnFor   = 2 * time.Second
)

// control passes an order on to the target that it is about. One that is not offered here
// any more has no terminals that anybody could type into.
func (s *service) control(o events.ControlOrder) {
	if t, err := s.tenants.find(o.Target); err == nil {
		t.control(o)
	}
}

// release passes on that a session is to lose an exclusive target.
func (s *service) release(o events.ReleaseOrder) {
	if t, err := s.tenants.find(o.Target); err == nil {
		t.release(o)
	}
}

// control takes the word of the bus on who may type from now on. Access epochs only rise.
func (t *tenancy) control(o events.ControlOrder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.AccessEpoch <= t.selected.AccessEpoch {
		return
	}
	t.selected.AccessEpoch, t.selected.Controller = o.AccessEpoch, o.Controller
	t.logger.Info("control of the target changed", "access_epoch", o.AccessEpoch, "controller", o.Controller)
}

// learn asks the bus who has control when somebody names an access epoch that was not heard
// of here: the order that told of it may have been lost with a connection.
func (t *tenancy) learn(ctx context.Context, epoch uint64) {
	wait, unknown := t.unheard(epoch)
	if !unknown || sleep(ctx, wait) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, learnFor)
	defer cancel()
	var sel events.Selection
	if err := t.bus.Do(ctx, events.CmdTargetSelect, events.SelectTarget{Name: t.name}, &sel); err != nil {
		t.logger.Warn("ask who has control of the target", "error", err)
		return
	}
	if sel.Instance == t.bus.Instance() {
		t.control(events.ControlOrder{Target: sel.Target, AccessEpoch: sel.AccessEpoch, Controller: sel.Controller})
	}
}

// unheard reports whether an access epoch is later than the one known, and how long to wait
// before asking for it.
func (t *tenancy) unheard(epoch uint64) (wait time.Duration, unknown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch <= t.selected.AccessEpoch || t.held == nil {
		return 0, false
	}
	now := time.Now()
	at := t.asked.Add(learnPause)
	if at.Before(now) {
		at = now
	}
	t.asked = at
	return at.Sub(now), true
}

// mayType refuses input while the target is not held, input of another access epoch, and
// that of anybody but who has control.
func (t *tenancy) mayType(ctx context.Context, by events.PrincipalName, epoch uint64) error {
	t.learn(ctx, epoch)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.held == nil || !t.held.Valid() {
		return notHeld(t.name)
	}
	now := t.selected
	switch {
	case epoch == now.AccessEpoch && (now.Controller == "" || now.Controller == by):
		return nil
	case now.Controller != "":
		return events.Errorf(events.CodeStaleSelection, "%s has control of target %s, access epoch %d; the input is of %s, access epoch %d",
			now.Controller, now.Target, now.AccessEpoch, by, epoch).With("controller", string(now.Controller))
	}
	return events.Errorf(events.CodeStaleSelection, "target %s is at access epoch %d, the input is of %d", now.Target, now.AccessEpoch, epoch)
}
