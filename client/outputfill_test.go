package client_test

import (
	"strings"
	"testing"
	"time"

	"keryx/events"
)

// questions returns what was asked, and forgets it.
func (r *reelTape) questions() []events.Output {
	r.outMu.Lock()
	defer r.outMu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func TestOutputThatFlowsIsNotLookedFor(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	r.chunk("stdout", "x", stored)
	got := r.read(connect(t, s), "exec")
	await(t, "what was stored", got.has("x"))
	r.questions()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	want, asked, stalled := "x", 0, 0
	for begun := time.Now(); time.Since(begun) < 2*time.Second; {
		before := time.Now()
		<-tick.C
		r.chunk("stdout", "x", live|stored)
		want += "x"
		await(t, "a chunk", got.has(want))
		asked += len(r.questions())
		if time.Since(before) > 100*time.Millisecond {
			stalled++ // a busy machine: a look may fall into the silence
		}
	}
	if asked > stalled {
		t.Errorf("the reader asked %d times while output came", asked)
	}
	r.exited()
	got.want(t, want, 0)
}

func TestAHoleFarAlongIsReadFromItsPlaceOnly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	r.chunk("stdout", "x", stored)
	got := r.read(connect(t, s), "exec")
	await(t, "what was stored", got.has("x"))
	const heard = 600
	for range heard {
		r.chunk("stdout", "x", live|stored)
	}
	await(t, "what was heard", got.has(strings.Repeat("x", 1+heard)))
	r.questions()
	r.chunk("stdout", "-", stored) // not heard
	r.chunk("stdout", "x", live|stored)
	want := strings.Repeat("x", 1+heard) + "-x"
	await(t, "all of it", got.has(want))
	for _, q := range r.questions() {
		if !q.TipOnly && q.From < heard {
			t.Errorf("the reader read from %d on, though it had heard %d", q.From, 1+heard)
		}
	}
	r.exited()
	got.want(t, want, 0)
}

func TestAHoleThatIsBeforeItsPlaceIsFound(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	r.chunk("stdout", "x", stored)
	got := r.read(connect(t, s), "exec")
	await(t, "what was stored", got.has("x"))
	for range 10 {
		r.chunk("stdout", "x", live) // the bus dropped them
	}
	await(t, "what was heard", got.has(strings.Repeat("x", 11)))
	r.chunk("stdout", "-", stored) // not heard
	r.chunk("stdout", "x", live|stored)
	want := strings.Repeat("x", 11) + "-x"
	await(t, "all of it", got.has(want))
	r.exited()
	got.want(t, want, 0)
}
