package authority_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/authority"
	"keryx/internal/sessionlog"
)

// slowLog is a log whose appends take their time. A message that expects the sequence 1
// is stale.
type slowLog struct {
	mu      sync.Mutex
	last    events.Sequence
	stored  map[string]events.Sequence
	batches []int // sizes
	unknown bool  // of every batch

	now  atomic.Int64 // single appends in flight
	most int
}

var errStale = &sessionlog.SequenceError{Last: 2}

func (l *slowLog) Append(_ context.Context, m sessionlog.Message) (events.Sequence, error) {
	l.enter()
	defer l.now.Add(-1)
	time.Sleep(time.Millisecond) //nolint:forbidigo // inside synctest
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Expect != nil && *m.Expect == 1 {
		return 0, errStale
	}
	l.last++
	l.stored[m.Subject] = l.last
	return l.last, nil
}

func (l *slowLog) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(l.most, int(l.now.Add(1)))
}

func (l *slowLog) AppendBatch(_ context.Context, ms []sessionlog.Message) ([]events.Sequence, error) {
	time.Sleep(5 * time.Millisecond) //nolint:forbidigo // inside synctest
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, len(ms))
	for _, m := range ms {
		if m.Expect != nil && *m.Expect == 1 {
			return nil, errStale
		}
	}
	out := make([]events.Sequence, 0, len(ms))
	for _, m := range ms {
		l.last++
		l.stored[m.Subject] = l.last
		out = append(out, l.last)
	}
	if l.unknown {
		return nil, sessionlog.ErrUnknownResult
	}
	return out, nil
}

// commits appends so many commits at once and returns what each was told.
func commits(l *slowLog, n int, of func(int) []sessionlog.Message) (sequences [][]events.Sequence, errs []error) {
	g := authority.NewGatherer(l)
	sequences, errs = make([][]events.Sequence, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { sequences[i], errs[i] = g.Append(context.Background(), of(i)) })
	}
	wg.Wait()
	return sequences, errs
}

func one(i int) []sessionlog.Message {
	return []sessionlog.Message{{Subject: fmt.Sprint(i)}}
}

func TestManyCommitsAtOnceShareABatchAndEachGetsItsOwnSequences(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &slowLog{stored: map[string]events.Sequence{}}
		const n = 4 * authority.GatherFrom
		sequences, errs := commits(l, n, func(i int) []sessionlog.Message {
			ms := one(i)
			if i%3 == 0 { // a name and an event
				ms = append(ms, sessionlog.Message{Subject: fmt.Sprint("name ", i)})
			}
			return ms
		})
		shared := 0
		for _, size := range l.batches {
			if size > 2 {
				shared += size
			}
		}
		if shared < n/2 {
			t.Errorf("batches of %v; most should have gone together", l.batches)
		}
		for i := range n {
			if errs[i] != nil || sequences[i][0] != l.stored[fmt.Sprint(i)] {
				t.Errorf("commit %d was told %v %v, it is at %d", i, sequences[i], errs[i], l.stored[fmt.Sprint(i)])
			}
			if i%3 == 0 && (len(sequences[i]) != 2 || sequences[i][1] != sequences[i][0]+1) {
				t.Errorf("commit %d of two messages was told %v", i, sequences[i])
			}
		}
	})
}

func TestAFewCommitsAtOnceGoSingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &slowLog{stored: map[string]events.Sequence{}}
		if _, errs := commits(l, authority.GatherFrom/2, one); errors.Join(errs...) != nil {
			t.Error(errors.Join(errs...))
		}
		if len(l.batches) != 0 {
			t.Errorf("batches of %v", l.batches)
		}
	})
}

func TestAStaleMemberRefusesTheBatchAndOnlyItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &slowLog{stored: map[string]events.Sequence{}}
		const n, stale = 3 * authority.GatherFrom, 2 * authority.GatherFrom
		_, errs := commits(l, n, func(i int) []sessionlog.Message {
			ms := one(i)
			if i == stale {
				old := events.Sequence(1)
				ms[0].Expect = &old
			}
			return ms
		})
		for i, err := range errs {
			if got, want := errors.Is(err, errStale), i == stale; got != want || !want && err != nil {
				t.Errorf("commit %d was told %v", i, err)
			}
		}
		if len(l.stored) != n-1 {
			t.Errorf("%d commits are stored, want %d", len(l.stored), n-1)
		}
		if l.most > 20 { // the server takes 50 batches at once, of two authorities
			t.Errorf("%d went singly at once", l.most)
		}
	})
}

func TestAnUnknownResultOfABatchIsUnknownToEachMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &slowLog{stored: map[string]events.Sequence{}, unknown: true}
		const n = 2 * authority.GatherFrom
		_, errs := commits(l, n, one)
		unknown := 0
		for _, err := range errs {
			if errors.Is(err, sessionlog.ErrUnknownResult) {
				unknown++
			} else if err != nil {
				t.Error(err)
			}
		}
		batched := 0
		for _, size := range l.batches {
			batched += size
		}
		if unknown == 0 || unknown != batched || len(l.stored) != n {
			t.Errorf("%d were told unknown, %d of %d went in batches, %d are stored", unknown, batched, n, len(l.stored))
		}
	})
}
