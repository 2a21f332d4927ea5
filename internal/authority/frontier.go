package authority

import (
	"sync"

	"keryx/events"
)

// frontier knows up to which sequence everything on the log is in memory. Commits come
// to an end in another order than they were written in, and what another authority wrote
// is not seen at all: that is a gap, which has to be read. It is safe for concurrent use.
type frontier struct {
	mu     sync.Mutex
	end    events.Sequence // all up to it is in memory
	beyond map[events.Sequence]struct{}
}

// reset begins anew at a sequence.
func (f *frontier) reset(end events.Sequence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end, f.beyond = end, make(map[events.Sequence]struct{})
}

// reached notes that what is at a sequence is in memory.
func (f *frontier) reached(seq events.Sequence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq <= f.end {
		return
	}
	f.beyond[seq] = struct{}{}
	f.advance()
}

func (f *frontier) advance() {
	for {
		if _, ok := f.beyond[f.end+1]; !ok {
			return
		}
		f.end++
		delete(f.beyond, f.end)
	}
}

// through returns up to where everything is in memory.
func (f *frontier) through() events.Sequence {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// gap returns the first sequence that is missing and the first that is not missing after
// it; ok is false if nothing is known beyond the frontier.
func (f *frontier) gap() (from, to events.Sequence, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for seq := range f.beyond {
		if !ok || seq < to {
			to, ok = seq, true
		}
	}
	return f.end + 1, to, ok
}

// close notes that nothing is missing any more before a sequence.
func (f *frontier) close(to events.Sequence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if to > f.end {
		f.end = max(f.end, to-1)
		f.advance()
	}
}
