// Package alarm hands out keys, each at the time set for it, from one heap and one
// waiting goroutine: ten thousand deadlines cost no goroutine each.
//
// A time is a duration on a clock of the caller's; the package reads no clock by
// itself. A queue is safe for concurrent use, but only one goroutine may wait.
package alarm

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// recheck bounds one sleep of [Queue.Wait]: timers do not count suspended time, the
// caller's clock may.
const recheck = 5 * time.Second

// stall is how late a sleep may end before it means that nothing ran meanwhile.
const stall = time.Second

// Queue holds at most one time for each key. Make it with [New].
type Queue[K comparable] struct {
	mu    sync.Mutex
	heap  entries[K]
	byKey map[K]*entry[K]
	kick  chan struct{} // size 1, coalesces: the earliest time changed
}

type entry[K comparable] struct {
	key   K
	at    time.Duration
	index int
}

// New returns an empty queue.
func New[K comparable]() *Queue[K] {
	return &Queue[K]{byKey: make(map[K]*entry[K]), kick: make(chan struct{}, 1)}
}

// Set sets the time of a key, in place of the one it had; 0 takes it away.
func (q *Queue[K]) Set(key K, at time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	cur, ok := q.byKey[key]
	switch {
	case at == 0 && ok:
		heap.Remove(&q.heap, cur.index)
		delete(q.byKey, key)
	case at == 0:
		return
	case ok:
		cur.at = at
		heap.Fix(&q.heap, cur.index)
	default:
		e := &entry[K]{key: key, at: at}
		q.byKey[key] = e
		heap.Push(&q.heap, e)
	}
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// Pending reports whether a key has a time that was not handed out.
func (q *Queue[K]) Pending(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.byKey[key]
	return ok
}

// Wait returns the next key whose time has passed; ok is false when ctx has ended.
// stalled says that this process, or the machine, did not run for a while before.
func (q *Queue[K]) Wait(ctx context.Context, clock func() time.Duration) (key K, stalled, ok bool) {
	for ctx.Err() == nil {
		now := clock()
		due, sleep, found := q.Next(now)
		if found {
			return due, stalled, true
		}
		sleep = min(sleep, recheck)
		timer := time.NewTimer(sleep)
		select {
		case <-ctx.Done():
		case <-q.kick:
		case <-timer.C:
		}
		timer.Stop()
		stalled = clock()-now > sleep+stall
	}
	return key, false, false
}

// Next returns a key whose time has passed by now, or how long to wait for the first.
func (q *Queue[K]) Next(now time.Duration) (key K, sleep time.Duration, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.heap) == 0 {
		return key, recheck, false
	}
	if first := q.heap[0]; first.at > now {
		return key, first.at - now, false
	}
	e := heap.Pop(&q.heap).(*entry[K])
	delete(q.byKey, e.key)
	return e.key, 0, true
}

// entries implements heap.Interface.
type entries[K comparable] []*entry[K]

func (h entries[K]) Len() int           { return len(h) }
func (h entries[K]) Less(i, j int) bool { return h[i].at < h[j].at }
func (h entries[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *entries[K]) Push(x any) {
	e := x.(*entry[K])
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *entries[K]) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
