package leases_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/leases"
)

// holderModel is what one instance believes: until when its lease may be trusted.
type holderModel struct {
	inst  events.Instance
	ref   events.LeaseRef
	ttl   time.Duration
	trust time.Duration // 0: does not hold
}

// TestNoTwoHoldersTrustOneLease: two granters with clocks of their own, started and
// stopped at any time, and three holders, who acquire, renew and release through either
// at any time, never leave two holders trusting the lease at once; and each new holder's
// fence is greater than all before.
func TestNoTwoHoldersTrustOneLease(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Hour
		m := leases.NewMemory()
		granters := make([]*leases.Granter, 2)
		start := func(i int) {
			offset := time.Duration(i) * time.Minute
			granters[i] = leases.NewGranterOn(m, leases.Config{
				Generation: 1, Logger: quiet, Clock: func() time.Duration { return now + offset },
			})
			if err := granters[i].Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		start(0)
		start(1)
		holders := []*holderModel{{inst: "i1"}, {inst: "i2"}, {inst: "i3"}}
		var top events.Fence
		check := func() {
			var trusting []events.Instance
			for _, h := range holders {
				if h.trust > now {
					trusting = append(trusting, h.inst)
				}
			}
			if len(trusting) > 1 {
				t.Fatalf("%v trust the lease at once", trusting)
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			g := granters[rapid.IntRange(0, 1).Draw(t, "granter")]
			h := holders[rapid.IntRange(0, 2).Draw(t, "holder")]
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				ttl := time.Duration(rapid.IntRange(2, 10).Draw(t, "ttl")) * time.Second
				a, err := g.Acquire(t.Context(), key, leases.Ask{Holder: "ex", Instance: h.inst, TTL: ttl})
				if err != nil {
					break
				}
				if a.Fence.Less(top) {
					t.Fatalf("fence %s was granted after %s", a.Fence, top)
				}
				if a.Fence == top && h.ref.Fence != top {
					t.Fatalf("%s got the fence %s of another", h.inst, top)
				}
				top, h.ref, h.ttl, h.trust = a.Fence, refTo(key, a.LeaseAnswer), ttl, now+ttl
			case 2, 3:
				ttl, err := g.Renew(t.Context(), "ex", h.inst, h.ref)
				if err == nil && ttl != h.ttl {
					t.Fatalf("renewed for %v, recorded was %v", ttl, h.ttl)
				}
				if h.trust = 0; err == nil {
					h.trust = now + ttl
				}
			case 4:
				h.trust = 0
				if err := g.Release(t.Context(), "ex", h.inst, h.ref); err != nil {
					t.Fatal(err)
				}
			case 5:
				start(rapid.IntRange(0, 1).Draw(t, "restarted"))
			default:
				now += time.Duration(rapid.IntRange(1, 12_000).Draw(t, "ms")) * time.Millisecond
				leases.ExpireDue(t.Context(), g) // the other one may be slow
			}
			check()
		}
	})
}
