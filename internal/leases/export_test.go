package leases

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"keryx/events"
)

// Memory is a bucket in memory, for tests of time.
type Memory struct {
	mu      sync.Mutex
	entries map[events.LeaseKey]entry
	last    events.Sequence
	watches map[chan struct{}]events.LeaseKey
	fail    error
}

var _ bucket = (*Memory)(nil)

// NewMemory returns an empty bucket.
func NewMemory() *Memory {
	return &Memory{entries: make(map[events.LeaseKey]entry), watches: make(map[chan struct{}]events.LeaseKey)}
}

// Fail makes every access fail until it is called with nil.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// Vanish removes a key as the server does when a record's own ttl has passed, and its
// marker's.
func (m *Memory) Vanish(k events.LeaseKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, k)
	m.last++
}

// Put writes a record as another writer would.
func (m *Memory) Put(k events.LeaseKey, rec events.LeaseRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.entries[k] = entry{record: rec, revision: m.last}
}

// Record returns what is on record for a key.
func (m *Memory) Record(k events.LeaseKey) events.LeaseRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[k].record
}

func (m *Memory) read(_ context.Context, k events.LeaseKey) (entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[k], m.fail
}

func (m *Memory) write(ctx context.Context, k events.LeaseKey, over events.Sequence, rec events.LeaseRecord) (entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return entry{}, err
	}
	if m.fail != nil {
		return entry{}, m.fail
	}
	if cur := m.entries[k]; cur.revision != over {
		return cur, errConflict
	}
	m.last++
	e := entry{record: rec, revision: m.last}
	m.entries[k] = e
	for c, watched := range m.watches {
		if watched == k && len(c) == 0 {
			c <- struct{}{}
		}
	}
	return e, nil
}

func (m *Memory) all(_ context.Context, fn func(events.LeaseKey, entry)) error {
	m.mu.Lock()
	all := maps.Clone(m.entries)
	m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(all), func(a, b events.LeaseKey) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		fn(k, all[k])
	}
	return nil
}

func (m *Memory) watch(k events.LeaseKey) (<-chan struct{}, func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{}, 1)
	m.watches[c] = k
	return c, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watches, c)
	}, nil
}

// NewGranterOn and NewElectorOn are over a bucket in memory.
var (
	NewGranterOn = func(m *Memory, cfg Config) *Granter { return newGranter(m, cfg) }
	NewElectorOn = func(m *Memory, cfg ElectorConfig) (*Elector, error) { return newElector(m, cfg) }
)

// Known is how many keys a granter has in memory.
func Known(g *Granter) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.leases)
}

// ExpireDue expires what is due now, without waiting.
func ExpireDue(ctx context.Context, g *Granter) {
	for {
		l, _, _ := g.due.Next(g.cfg.Clock())
		if l == nil {
			return
		}
		g.expire(ctx, l)
	}
}
