package targets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/targets"
)

// ledger is a state and the log behind it.
type ledger struct {
	t     *testing.T
	state targets.State
	log   []events.Record
}

// add appends a fact, if there is one; ok says whether.
func add[T any](l *ledger, typ events.Type, fact *T, err error) (ok bool) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	if fact == nil {
		return false
	}
	body, err := events.MarshalData(fact)
	if err != nil {
		l.t.Fatal(err)
	}
	r := events.Record{Type: typ, Data: body, Ordinal: events.Ordinal(len(l.log) + 1)}
	l.log = append(l.log, r)
	if err := l.state.Fold(r); err != nil {
		l.t.Fatal(err)
	}
	return true
}

func (l *ledger) register(inst events.Instance, exclusive bool) events.Selection {
	l.t.Helper()
	fact, sel, err := l.state.Register("runner", events.RegisterTarget{
		Spec: events.TargetSpec{Name: "work", Kind: "terminal", Exclusive: exclusive}, Instance: inst,
	})
	add(l, events.TypeTargetRegistered, fact, err)
	return sel
}

func (l *ledger) attach(inst events.Instance, s events.SessionID) bool {
	l.t.Helper()
	fact, err := l.state.Attach("runner", events.ReportTargetAttached{Name: "work", Instance: inst, Session: s, Epoch: 1})
	return add(l, events.TypeTargetAttached, fact, err)
}

func (l *ledger) detach(inst events.Instance, s events.SessionID) bool {
	l.t.Helper()
	fact := l.state.Detach("runner", events.ReportTargetDetached{Name: "work", Instance: inst, Session: s, Epoch: 1, Reason: "x"})
	return add(l, events.TypeTargetDetached, fact, nil)
}

func TestReport_changes_the_condition_of_its_own_registration(t *testing.T) {
	t.Parallel()
	l := &ledger{t: t}
	sel := l.register("i1", false)
	report := events.ReportTarget{Name: "work", Instance: "i1", Generation: sel.Generation}
	say := func() bool {
		fact, err := l.state.Report("runner", report)
		return add(l, events.TypeTargetReported, fact, err)
	}
	if say() {
		t.Error("said what is known")
	}
	report.Fault = events.Errorf(events.CodeValidateFailed, "exit 1")
	if !say() || say() {
		t.Error("a fault is to be said once")
	}
	if err := l.state.Fault("work"); events.CodeOf(err) != events.CodeValidateFailed {
		t.Errorf("fault %v", err)
	}
	report.Generation++
	if say() {
		t.Error("a generation that is not was reported on")
	}
	if _, err := l.state.Report("runner", events.ReportTarget{Name: "work", Instance: "i2"}); events.CodeOf(err) != events.CodeUnknownTarget {
		t.Errorf("another instance: %v", err)
	}
	l.register("i2", false)
	if err := l.state.Fault("work"); err != nil {
		t.Errorf("a new registration has the fault of the old one: %v", err)
	}
}

func TestClaims_are_of_one_session_and_end_with_what_they_hang_on(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *ledger){
		"the session detaches":             func(l *ledger) { l.detach("i1", "s1") },
		"another instance has it":          func(l *ledger) { l.register("i2", true) },
		"it is exclusive no longer":        func(l *ledger) { l.register("i1", false) },
		"it is withdrawn and comes back":   func(l *ledger) { l.withdraw("i1"); l.register("i1", true) },
		"the executor gives it to another": func(l *ledger) { l.attach("i1", "s2"); l.detach("i1", "s2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &ledger{t: t}
			l.register("i1", true)
			if !l.attach("i1", "s1") || l.attach("i1", "s1") {
				t.Fatal("a claim is to be said once")
			}
			if l.state.Claimed("work", "s1") != nil || events.CodeOf(l.state.Claimed("work", "s2")) != events.CodeTargetClaimed {
				t.Error("not the first one's alone")
			}
			if l.detach("i1", "s2") || l.detach("i0", "s1") {
				t.Error("somebody else's word ended it")
			}
			end(l)
			if h, ok := l.state.Holder("work"); ok {
				t.Errorf("still %+v", h)
			}
			var again targets.State
			for _, r := range l.log {
				if err := again.Fold(r); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(l.state.List(), again.List()); d != "" {
				t.Errorf("fold (-first +again):\n%s", d)
			}
		})
	}
}

func (l *ledger) withdraw(inst events.Instance) {
	l.t.Helper()
	add(l, events.TypeTargetWithdrawn, l.state.Withdraw("runner", events.WithdrawTarget{Name: "work", Instance: inst}), nil)
}

func TestClaims_outlive_a_new_generation_of_the_same_instance(t *testing.T) {
	t.Parallel()
	l := &ledger{t: t}
	l.register("i1", true)
	l.attach("i1", "s1")
	fact, _, err := l.state.Register("runner", events.RegisterTarget{
		Spec: events.TargetSpec{Name: "work", Kind: "terminal", Exclusive: true, Cwd: "/srv"}, Instance: "i1",
	})
	add(l, events.TypeTargetRegistered, fact, err)
	if h, ok := l.state.Holder("work"); !ok || h.Session != "s1" {
		t.Errorf("holder %+v", h)
	}
}
