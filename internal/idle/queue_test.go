package idle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/idle"
)

var start = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func item(id string) events.Item {
	return events.Item{Receipt: events.ReceiptID(id), QueuedAt: start, Epoch: 1, Sequence: 1, Body: events.Body{Text: id}}
}

func queue(ids ...string) *idle.Queue {
	q := &idle.Queue{}
	for _, id := range ids {
		q.Enqueue(item(id))
	}
	return q
}

func ids(its []events.Item) []string {
	out := []string{}
	for _, it := range its {
		out = append(out, string(it.Receipt))
	}
	return out
}

func offer(items ...events.ReceiptID) idle.Offer {
	return idle.Offer{ID: "o", Items: items, At: start, Deadline: idle.OfferDeadline}
}

func state(q *idle.Queue, id string) events.ItemState {
	r, _ := q.Receipt("s", events.ReceiptID(id))
	return r.State
}

func TestDeclineDelayDoublesUpTo30Seconds(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for n := range 8 {
		got = append(got, idle.DeclineDelay(n)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 1, 2, 4, 8, 16, 30, 30}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatBecomesOfAnOffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		act     func(q *idle.Queue)
		state   events.ItemState
		waiting []string
		open    bool
	}{
		{"it is open until something happens", func(*idle.Queue) {}, events.StateOffered, []string{"a", "b"}, true},
		{"accepted, its item is the turn's", func(q *idle.Queue) { q.Accept([]events.ReceiptID{"a"}, "t") }, events.StateAccepted, []string{"b"}, false},
		{"declined, its item waits at the head", func(q *idle.Queue) { q.Requeue("o", []events.ReceiptID{"a"}, start.Add(time.Second)) }, events.StateQueued, []string{"a", "b"}, false},
		{"withdrawn, its item waits at the head", (*idle.Queue).Withdraw, events.StateQueued, []string{"a", "b"}, false},
		{"without an answer, its item is unresolved", func(q *idle.Queue) { q.Unresolve([]events.ReceiptID{"a"}, "silence") }, events.StateUnresolved, []string{"b"}, false},
		{"invalidated, its item is over", func(q *idle.Queue) { q.Invalidate([]events.ReceiptID{"a"}, "end") }, events.StateInvalidated, []string{"b"}, false},
		{"a new epoch without it knows it no more", func(q *idle.Queue) { q.Restart([]events.Item{item("b")}) }, events.StateQueued, []string{"b"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := queue("a", "b")
			q.Offer(offer("a"))
			tt.act(q)
			if _, _, open := q.Open(); open != tt.open || state(q, "a") != tt.state {
				t.Errorf("open %v, state %s", open, state(q, "a"))
			}
			if diff := cmp.Diff(tt.waiting, ids(q.Waiting())); diff != "" {
				t.Errorf("waiting (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUnresolvedItemComesBackOnlyWhenRequeued(t *testing.T) {
	t.Parallel()
	q := queue("a", "b")
	q.Offer(offer("a"))
	q.Unresolve([]events.ReceiptID{"a"}, "silence")
	q.Enqueue(item("a"))
	if diff := cmp.Diff([]string{"b"}, ids(q.Waiting())); diff != "" {
		t.Fatalf("waiting (-want +got):\n%s", diff)
	}
	q.Requeue("o", []events.ReceiptID{"a"}, time.Time{})
	if diff := cmp.Diff([]string{"a", "b"}, ids(q.Waiting())); diff != "" || len(q.Unresolved()) != 0 {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

func TestKeysAreForgottenAfterTheirLifeOrWhenThereAreTooMany(t *testing.T) {
	t.Parallel()
	q := &idle.Queue{}
	add := func(n int, at time.Time) {
		it := item(fmt.Sprint("r", n))
		it.IdempotencyKey, it.Sender, it.QueuedAt, it.BodyDigest = fmt.Sprint("k", n), "gw", at, "d"
		q.Enqueue(it)
		q.Offer(offer(it.Receipt))
		q.Accept([]events.ReceiptID{it.Receipt}, "t")
	}
	add(0, start)
	if id, digest, ok := q.Keyed("gw", "k0", start.Add(idle.KeyLife)); !ok || id != "r0" || digest != "d" {
		t.Errorf("at the end of its life: %s %s %v", id, digest, ok)
	}
	if _, _, ok := q.Keyed("gw", "k0", start.Add(idle.KeyLife+1)); ok {
		t.Error("its life is over")
	}
	if _, _, ok := q.Keyed("other", "k0", start); ok {
		t.Error("keys are a sender's own")
	}
	for n := range idle.MaxKeys {
		add(n+1, start.Add(time.Minute))
	}
	if _, _, ok := q.Keyed("gw", "k0", start); ok {
		t.Error("the oldest of too many is forgotten")
	}
	if got := len(q.Keys("s", start)); got != idle.MaxKeys {
		t.Errorf("%d keys", got)
	}
}

func TestAKeyUsedAgainAfterItsLifeMeansTheNewItem(t *testing.T) {
	t.Parallel()
	q := &idle.Queue{}
	for i, at := range []time.Time{start, start.Add(idle.KeyLife + 1)} {
		it := item(fmt.Sprint("r", i))
		it.IdempotencyKey, it.QueuedAt = "k", at
		q.Enqueue(it)
	}
	if id, _, ok := q.Keyed("", "k", start.Add(idle.KeyLife+2)); !ok || id != "r1" || len(q.Keys("s", start.Add(idle.KeyLife+2))) != 1 {
		t.Errorf("key means %s", id)
	}
}

func TestDigestTellsPartsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, b := range []events.Body{{Text: "ab"}, {Text: "a", Data: events.Raw("b")}, {Data: events.Raw("ab")}} {
		for _, k := range []events.ItemKind{events.ItemUser, events.ItemSystem} {
			seen[idle.Digest(k, b)] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d digests of 6 bodies", len(seen))
	}
}

// TestAnyEventsKeepEachItemInOneState throws moves at a queue in any order.
func TestAnyEventsKeepEachItemInOneState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := &idle.Queue{}
		over := map[events.ReceiptID]events.ItemState{}
		for range rapid.IntRange(1, 60).Draw(rt, "moves") {
			id := rapid.SampledFrom([]events.ReceiptID{"a", "b", "c", "d"}).Draw(rt, "item")
			move(rt, q, id)
			check(rt, q, over)
		}
	})
}

func move(rt *rapid.T, q *idle.Queue, id events.ReceiptID) {
	turn := events.TurnID(rapid.SampledFrom([]string{"t1", "t2"}).Draw(rt, "turn"))
	one := []events.ReceiptID{id}
	moves := []func(){
		func() { q.Enqueue(drawItem(rt, id)) },
		func() { q.Enqueue(drawItem(rt, id)) },
		func() { q.Interrupt(drawItem(rt, id), turn) },
		func() { q.Offer(offer(id)) },
		func() { q.Offer(idle.Offer{ID: "s", Items: one, Turn: turn, At: start}) },
		func() { q.Accept(one, turn) },
		func() { q.Settle(one, turn, events.OutcomeCompleted) },
		func() { q.Requeue("o", one, start) },
		func() { q.Unresolve(one, "silence") },
		func() { q.Invalidate(one, "end") },
		func() { q.End(one, events.StateCancelled, "") },
		func() { q.Edit(id, events.Body{Text: "edited"}) },
		func() { q.Downgrade(id, events.ModeSteer, events.ModeEnqueue) },
		func() { q.Hold(one, "budget") },
		func() { q.Release(one) },
		func() { q.Unfit(events.BindSource, "moved") },
		func() { q.Withdraw() },
		func() { q.Late(turn, events.OutcomeFailed) },
		func() { q.Restart(q.Waiting()) },
	}
	rapid.SampledFrom(moves).Draw(rt, "move")()
}

func drawItem(rt *rapid.T, id events.ReceiptID) events.Item {
	it := item(string(id))
	it.Mode = rapid.SampledFrom([]events.Mode{events.ModeEnqueue, events.ModeMerge, events.ModeSteer}).Draw(rt, "mode")
	it.Kind = rapid.SampledFrom([]events.ItemKind{events.ItemUser, events.ItemPeer}).Draw(rt, "kind")
	it.NotBefore = rapid.SampledFrom([]time.Time{{}, start.Add(time.Second), start.Add(time.Minute)}).Draw(rt, "due")
	it.Bind = rapid.SampledFrom([][]events.Binding{nil, {events.BindSource}}).Draw(rt, "bind")
	return it
}

// check holds where each item is kept against what its receipt says, and what is to be
// done next against where the items are.
func check(rt *rapid.T, q *idle.Queue, over map[events.ReceiptID]events.ItemState) {
	held := map[events.ReceiptID]int{}
	for _, it := range append(q.Waiting(), q.Unresolved()...) {
		held[it.Receipt]++
	}
	if q.Kept() != len(q.Waiting()) {
		rt.Fatalf("%d are kept and %d listed", q.Kept(), len(q.Waiting()))
	}
	for _, id := range []events.ReceiptID{"a", "b", "c", "d"} {
		r, known := q.Receipt("s", id)
		waits := r.State == events.StateQueued || r.State == events.StateOffered
		if held[id] > 1 || waits && held[id] != 1 || !waits && r.State != events.StateUnresolved && held[id] != 0 {
			rt.Fatalf("item %s is %q (known %v) and held %d times", id, r.State, known, held[id])
		}
		if was, ok := over[id]; ok && was != r.State {
			rt.Fatalf("item %s was %s and is %s", id, was, r.State)
		}
		if r.Over() {
			over[id] = r.State
		}
	}
	checkNext(rt, q)
}

func checkNext(rt *rapid.T, q *idle.Queue) {
	group, _ := q.Next(true)
	if waits := q.Pending() > 0; len(group) > 0 && !waits {
		rt.Fatalf("%d to be offered and nothing waits", len(group))
	}
	for i, e := range group {
		if r, _ := q.Receipt("s", e.Item.Receipt); r.State != events.StateQueued || q.Held(e.Item.Receipt) {
			rt.Fatalf("item %s is %s, held %v, and to be offered", r.ID, r.State, q.Held(r.ID))
		}
		if i > 0 && (e.Item.Mode != events.ModeMerge || group[0].Item.Mode != events.ModeMerge || e.Item.Kind != group[0].Item.Kind) {
			rt.Fatalf("items of %s and %s in one offer", group[0].Item.Mode, e.Item.Mode)
		}
	}
	for _, id := range q.DueItems(start) {
		rt.Fatalf("item %s is due too early", id)
	}
	for _, t := range []events.TurnID{"t1", "t2"} {
		if e, ok := q.Steer(t); ok && e.Item.Mode != events.ModeSteer {
			rt.Fatalf("item of mode %s is to be steered", e.Item.Mode)
		}
	}
}
