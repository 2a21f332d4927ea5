package targets_test

import (
	"testing"

	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/targets"
)

// bench folds what is decided.
type bench struct {
	*rapid.T
	state targets.State
	last  events.Sequence
}

func (b *bench) fold(t events.Type, data any) {
	b.Helper()
	body, err := events.MarshalData(data)
	if err != nil {
		b.Fatal(err)
	}
	b.last++
	if err := b.state.Fold(events.Record{Type: t, Sequence: b.last, Data: body}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) register(instance string) {
	b.Helper()
	fact, _, err := b.state.Register("ex", events.RegisterTarget{
		Spec: events.TargetSpec{Name: "local", Kind: "terminal"}, Instance: events.Instance(instance),
	})
	if err != nil {
		b.Fatal(err)
	}
	if fact != nil {
		b.fold(events.TypeTargetRegistered, *fact)
	}
}

func (b *bench) now() events.Selection {
	b.Helper()
	sel, err := b.state.Select("local")
	if err != nil {
		b.Fatal(err)
	}
	return sel
}

func TestTheAccessEpochRisesWithEachChangeOfControlAndNeverElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := &bench{T: rt}
		b.register("i0")
		people := []events.PrincipalName{"ann", "bob"}
		var epoch uint64
		var holder events.PrincipalName
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			before := b.now()
			by := rapid.SampledFrom(people).Draw(rt, "by")
			switch rapid.SampledFrom([]string{"take", "give", "register"}).Draw(rt, "step") {
			case "register":
				b.register(rapid.SampledFrom([]string{"i0", "i1"}).Draw(rt, "instance"))
			case "take":
				b.control(by, events.ControlTarget{Name: "local"})
				epoch, holder = epoch+1, by
			case "give":
				named := rapid.Uint64Range(0, epoch).Draw(rt, "epoch")
				b.control(by, events.ControlTarget{Name: "local", Release: true, AccessEpoch: named})
				if holder == by && named == epoch {
					epoch, holder = epoch+1, ""
				}
			}
			now := b.now()
			if now.AccessEpoch != epoch || now.Controller != holder {
				rt.Fatalf("%s has control at epoch %d, want %s at %d", now.Controller, now.AccessEpoch, holder, epoch)
			}
			if stale := b.state.Check(before) != nil; stale != (before.AccessEpoch != epoch || before.Generation != now.Generation) {
				rt.Fatalf("the selection %+v is stale: %t; it is %+v now", before, stale, now)
			}
		}
	})
}

// control decides, folds, and checks that the answer is what holds then.
func (b *bench) control(by events.PrincipalName, c events.ControlTarget) {
	b.Helper()
	fact, sel, err := b.state.Control(by, c)
	if err != nil {
		b.Fatal(err)
	}
	if fact != nil {
		b.fold(events.TypeTargetControlChanged, *fact)
	}
	if now := b.now(); now != sel {
		b.Fatalf("the answer is %+v, it is %+v", sel, now)
	}
}

func TestControlOfATargetThatNobodyOffersIsRefused(t *testing.T) {
	t.Parallel()
	var s targets.State
	if _, _, err := s.Control("ann", events.ControlTarget{Name: "local"}); events.CodeOf(err) != events.CodeUnknownTarget {
		t.Errorf("refused with %v", err)
	}
}
