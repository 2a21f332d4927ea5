package authority

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// wakeups runs a callback for each lane at the time it asked for, from one
// goroutine. A lane has at most one wake-up; setting another replaces it.
type wakeups struct {
	mu    sync.Mutex
	heap  wakeHeap
	byKey map[*lane]*wake
	kick  chan struct{} // size 1, coalesces: the earliest time changed
}

type wake struct {
	lane  *lane
	at    time.Time
	index int
}

func newWakeups() *wakeups {
	return &wakeups{byKey: make(map[*lane]*wake), kick: make(chan struct{}, 1)}
}

// set asks for a wake-up of l at a time; the zero time asks for none.
func (w *wakeups) set(l *lane, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cur, ok := w.byKey[l]
	switch {
	case at.IsZero() && ok:
		heap.Remove(&w.heap, cur.index)
		delete(w.byKey, l)
	case at.IsZero():
		return
	case ok:
		cur.at = at
		heap.Fix(&w.heap, cur.index)
	default:
		n := &wake{lane: l, at: at}
		w.byKey[l] = n
		heap.Push(&w.heap, n)
	}
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// run wakes lanes until ctx ends.
func (w *wakeups) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := w.due(time.Now())
		for _, l := range due {
			l.add(0, func(context.Context) {}) // settling is all the job there is
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		case <-timer.C:
		}
	}
}

func (w *wakeups) due(now time.Time) (due []*lane, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.heap) > 0 && !w.heap[0].at.After(now) {
		n := heap.Pop(&w.heap).(*wake)
		delete(w.byKey, n.lane)
		due = append(due, n.lane)
	}
	if len(w.heap) == 0 {
		return due, time.Hour
	}
	return due, w.heap[0].at.Sub(now)
}

type wakeHeap []*wake

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h wakeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *wakeHeap) Push(x any) {
	n := x.(*wake)
	n.index = len(*h)
	*h = append(*h, n)
}

func (h *wakeHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}
