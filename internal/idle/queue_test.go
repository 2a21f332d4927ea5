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
		{"declined, its item waits at the head", func(q *idle.Queue) { q.Requeue([]events.ReceiptID{"a"}, start.Add(time.Second)) }, events.StateQueued, []string{"a", "b"}, false},
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
	q.Requeue([]events.ReceiptID{"a"}, time.Time{})
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
	switch rapid.IntRange(0, 8).Draw(rt, "move") {
	case 0, 1:
		q.Enqueue(item(string(id)))
	case 2:
		q.Offer(offer(id))
	case 3:
		q.Accept(one, turn)
	case 4:
		q.Settle(one, turn, events.OutcomeCompleted)
	case 5:
		q.Requeue(one, start)
	case 6:
		q.Unresolve(one, "silence")
	case 7:
		q.Invalidate(one, "end")
	case 8:
		q.Restart(q.Waiting())
	}
}

// check holds where each item is kept against what its receipt says.
func check(rt *rapid.T, q *idle.Queue, over map[events.ReceiptID]events.ItemState) {
	held := map[events.ReceiptID]int{}
	for _, it := range append(q.Waiting(), q.Unresolved()...) {
		held[it.Receipt]++
	}
	for _, id := range []events.ReceiptID{"a", "b", "c", "d"} {
		r, known := q.Receipt("s", id)
		waits := r.State == events.StateQueued || r.State == events.StateOffered
		if held[id] > 1 || waits && held[id] != 1 || !waits && r.State != events.StateUnresolved && held[id] != 0 {
			rt.Fatalf("item %s is %q (known %v) and held %d times", id, r.State, known, held[id])
		}
		ended := r.State == events.StateSettled || r.State == events.StateInvalidated
		if was, ok := over[id]; ok && was != r.State {
			rt.Fatalf("item %s was %s and is %s", id, was, r.State)
		}
		if ended {
			over[id] = r.State
		}
	}
}
