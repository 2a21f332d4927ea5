package leases

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// recheck bounds one sleep of [deadlines.wait]: timers do not count suspended time,
// the clock of leases does.
const recheck = 5 * time.Second

// stall is how late a sleep may end before it means that nothing ran meanwhile.
const stall = time.Second

// deadlines hands out leases at the time set for each, from one heap.
type deadlines struct {
	mu    sync.Mutex
	heap  dueHeap
	byKey map[*lease]*due
	kick  chan struct{} // size 1, coalesces: the earliest deadline changed
}

type due struct {
	lease *lease
	at    time.Duration
	index int
}

func newDeadlines() *deadlines {
	return &deadlines{byKey: make(map[*lease]*due), kick: make(chan struct{}, 1)}
}

// set sets a lease's deadline; 0 removes it.
func (d *deadlines) set(l *lease, at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cur, ok := d.byKey[l]
	switch {
	case at == 0 && ok:
		heap.Remove(&d.heap, cur.index)
		delete(d.byKey, l)
	case at == 0:
		return
	case ok:
		cur.at = at
		heap.Fix(&d.heap, cur.index)
	default:
		n := &due{lease: l, at: at}
		d.byKey[l] = n
		heap.Push(&d.heap, n)
	}
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// pending reports whether a lease has a deadline set.
func (d *deadlines) pending(l *lease) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.byKey[l]
	return ok
}

// wait returns the next lease whose deadline has passed, or nil when ctx ends. stalled
// says that this process, or the machine, did not run for a while before.
func (d *deadlines) wait(ctx context.Context, clock func() time.Duration) (l *lease, stalled bool) {
	for ctx.Err() == nil {
		now := clock()
		l, sleep := d.next(now)
		if l != nil {
			return l, stalled
		}
		sleep = min(sleep, recheck)
		timer := time.NewTimer(sleep)
		select {
		case <-ctx.Done():
		case <-d.kick:
		case <-timer.C:
		}
		timer.Stop()
		stalled = clock()-now > sleep+stall
	}
	return nil, false
}

func (d *deadlines) next(now time.Duration) (*lease, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.heap) == 0 {
		return nil, recheck
	}
	if first := d.heap[0]; first.at > now {
		return nil, first.at - now
	}
	n := heap.Pop(&d.heap).(*due)
	delete(d.byKey, n.lease)
	return n.lease, 0
}

type dueHeap []*due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	n := x.(*due)
	n.index = len(*h)
	*h = append(*h, n)
}

func (h *dueHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}
