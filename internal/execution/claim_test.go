package execution_test

import (
	"os"
	"path/filepath"
	"testing"

	"keryx/events"
	"keryx/internal/execution"
)

// of makes an order another session's.
func (b *memoryBus) of(session events.SessionID, script string) events.StartOrder {
	o := b.order(sh(script))
	o.Session = session
	return o
}

func (b *memoryBus) attachedTo(session events.SessionID) events.ReportTargetAttached {
	b.t.Helper()
	return await(b, "the claim", func(r events.ReportTargetAttached) bool { return r.Session == session })
}

func (b *memoryBus) detachedFrom(session events.SessionID) events.ReportTargetDetached {
	b.t.Helper()
	return await(b, "the end of the claim", func(r events.ReportTargetDetached) bool { return r.Session == session })
}

func TestAnExclusiveTargetIsTheFirstSessionsThatComes(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Exclusive: true}})
	one, two := events.SessionID(events.NewID()), events.SessionID(events.NewID())
	gate := filepath.Join(t.TempDir(), "go")
	// Told in one go, so that only the order of their arrival can decide.
	first, second, third := b.of(one, "while [ ! -e "+gate+" ]; do sleep 0.02; done"), b.of(two, "true"), b.of(one, "true")
	for _, o := range []events.StartOrder{first, second, third} {
		b.tell(events.ExecStart, o)
	}
	if r := b.refused(second); r.Code != events.CodeTargetClaimed {
		t.Errorf("the second session: %+v", r)
	}
	if end := b.exited(third); end.ExitCode != 0 {
		t.Errorf("the first session again: %+v", end)
	}
	b.attachedTo(one)
	// Asked to let go while a command runs, it does so after that.
	b.tell(events.ExecRelease, events.ReleaseOrder{Target: "local", Session: one, Epoch: 1, Reason: "asked"})
	late := b.of(two, "true")
	b.tell(events.ExecStart, late)
	if r := b.refused(late); r.Code != events.CodeTargetClaimed {
		t.Errorf("while it still runs: %+v", r)
	}
	must(t, os.WriteFile(gate, nil, 0o600))
	b.exited(first)
	if d := b.detachedFrom(one); d.Reason != "asked" {
		t.Errorf("detached: %+v", d)
	}
}

func TestAClaimEndsWithItsEpoch(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Exclusive: true}})
	one := events.SessionID(events.NewID())
	o := b.of(one, "true")
	b.tell(events.ExecStart, o)
	b.exited(o)
	b.attachedTo(one)
	b.update(func() { b.sessionEpoch = 2 })
	if err := b.nc.Publish(events.LiveSubject(profile, one.Scope()), nil); err != nil {
		t.Fatal(err)
	}
	if d := b.detachedFrom(one); d.Reason != "the epoch ended" {
		t.Errorf("detached: %+v", d)
	}
}

func TestAClaimIsToldAnewUnderANewRegistration(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{Target: events.TargetSpec{Name: "local", Exclusive: true}})
	one := events.SessionID(events.NewID())
	o := b.of(one, "true")
	b.tell(events.ExecStart, o)
	b.exited(o)
	b.attachedTo(one)
	b.update(func() { b.facts = nil; b.fences++ }) // the lease moved on: it is taken anew
	b.attachedTo(one)
}
