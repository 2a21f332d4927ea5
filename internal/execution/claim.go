package execution

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/targets"
)

const (
	// claimLook is how often the bus is asked whether the epoch of a claim goes on: its end
	// may have been told while the connection was lost.
	claimLook = 10 * time.Second
	// claimFor bounds one such question.
	claimFor = 5 * time.Second
)

// claim is a session that has an exclusive target to itself. The tenancy's mu guards it.
type claim struct {
	session events.SessionID
	epoch   events.Epoch
	jobs    int    // commands of it that are on their way, or run
	told    bool   // the bus knows
	retell  bool   // the bus is to be told under a new registration
	ending  string // why it ends once nothing runs; empty while it goes on
	follow  context.CancelFunc
}

// arrive gives an exclusive target to the first session that comes, in the order of calls.
// It returns nil for a target that is not, and target_claimed to any other session. Whoever
// gets a claim calls [tenancy.depart] once.
func (t *tenancy) arrive(o events.StartOrder) (*claim, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.checkLocked(o) != nil || !t.current.spec.Exclusive {
		return nil, nil // it is refused for that, or needs no claim
	}
	c := t.claim
	switch {
	case c == nil:
		c = &claim{session: o.Session, epoch: o.Epoch}
		t.claim = c
	case c.session != o.Session || c.epoch != o.Epoch || c.ending != "":
		return nil, targets.ClaimedBy(t.name, c.session)
	}
	c.jobs++
	t.kick()
	return c, nil
}

// depart ends what arrive began. A claim that the bus never heard of is forgotten with its
// last command; another one lasts until its epoch ends, or it is detached.
func (t *tenancy) depart(c *claim) {
	if c == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.jobs--
	if c.jobs == 0 && !c.told && t.claim == c {
		t.forgetLocked()
	}
	t.kick()
}

// forgetLocked ends the claim here.
func (t *tenancy) forgetLocked() {
	if t.claim != nil && t.claim.follow != nil {
		t.claim.follow()
	}
	t.claim = nil
}

// attached waits until the bus knows of a claim: before the first command of it is launched.
func (t *tenancy) attached(ctx context.Context, c *claim) error {
	if c == nil {
		return nil
	}
	err := t.bus.Do(ctx, events.CmdTargetAttached, events.ReportTargetAttached{
		Name: t.name, Instance: t.bus.Instance(), Session: c.session, Epoch: c.epoch,
	}, nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		c.told = true
	}
	return err
}

// release begins the end of a claim: it is over once nothing of it runs.
func (t *tenancy) release(o events.ReleaseOrder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.claim; c != nil && c.session == o.Session && c.epoch == o.Epoch && c.ending == "" {
		c.ending = o.Reason
	}
	t.kick()
}

// tendClaim follows the epoch of a claim, tells of it anew under a new registration, and
// ends it when that is due.
func (t *tenancy) tendClaim(ctx context.Context, followers *sync.WaitGroup) error {
	t.mu.Lock()
	c, exclusive := t.claim, t.current != nil && t.current.spec.Exclusive
	if c == nil {
		t.mu.Unlock()
		return nil
	}
	if t.current != nil && !exclusive {
		t.forgetLocked() // the bus knows by the registration
		t.mu.Unlock()
		return nil
	}
	if c.follow == nil {
		var following context.Context
		following, c.follow = context.WithCancel(ctx)
		followers.Go(func() { t.followEpoch(following, c) })
	}
	tell := exclusive && c.retell
	end := c.ending != "" && c.jobs == 0
	t.mu.Unlock()
	switch {
	case end:
		return t.detach(ctx, c)
	case tell:
		return t.tellAgain(ctx, c)
	}
	return nil
}

func (t *tenancy) tellAgain(ctx context.Context, c *claim) error {
	err := t.attached(ctx, c)
	if err == nil {
		t.mu.Lock()
		c.retell = false
		t.mu.Unlock()
	}
	return err
}

// detach tells the bus that a claim is over, and then lets others in.
func (t *tenancy) detach(ctx context.Context, c *claim) error {
	err := t.bus.Do(ctx, events.CmdTargetDetached, events.ReportTargetDetached{
		Name: t.name, Instance: t.bus.Instance(), Session: c.session, Epoch: c.epoch, Reason: c.ending,
	}, nil)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logger.Info("target detached", "session", c.session, "reason", c.ending)
	if t.claim == c {
		t.forgetLocked()
	}
	return nil
}

// followEpoch ends a claim with its epoch: by what is told of the session, and by asking.
func (t *tenancy) followEpoch(ctx context.Context, c *claim) {
	told := make(chan *nats.Msg, 256) // what does not fit is asked for
	p := t.bus.Principal()
	sub, err := t.bus.NATS().ChanSubscribe(events.LiveSubject(p.Profile, c.session.Scope()), told)
	if err != nil {
		t.logger.Warn("follow the session of an exclusive target; asking instead", "session", c.session, "error", err)
	} else {
		defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	}
	look := time.NewTicker(claimLook)
	defer look.Stop()
	for t.epochGoesOn(ctx, c) {
		if !awaitEnd(ctx, told, look.C) {
			return
		}
	}
	t.release(events.ReleaseOrder{Target: t.name, Session: c.session, Epoch: c.epoch, Reason: "the epoch ended"})
}

// awaitEnd waits until an epoch may have ended; false when ctx has.
func awaitEnd(ctx context.Context, told <-chan *nats.Msg, look <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-look:
			return true
		case m := <-told:
			ev, err := events.Decode(m.Header, m.Data)
			if err != nil || events.Type(ev.Type()) == events.TypeSessionFinalized || events.Type(ev.Type()) == events.TypeSessionReset {
				return true
			}
		}
	}
}

// epochGoesOn asks the bus. No answer changes nothing.
func (t *tenancy) epochGoesOn(ctx context.Context, c *claim) bool {
	ctx, cancel := context.WithTimeout(ctx, claimFor)
	defer cancel()
	var raw json.RawMessage
	err := t.bus.Do(ctx, events.CmdSessionShow, events.SessionShow{To: string(c.session)}, &raw)
	if err != nil {
		return events.CodeOf(err) != events.CodeUnknownSession
	}
	var v struct {
		Epoch  events.Epoch         `json:"epoch"`
		Status events.SessionStatus `json:"status"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.logger.Error("read a session", "session", c.session, "error", err)
		return true
	}
	return v.Epoch == c.epoch && v.Status != events.StatusFinalized
}
