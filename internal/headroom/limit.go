package headroom

import "slices"

// Burst is how much a burst of work may take beyond the goal of the collector at rest. A
// flood of output works in 8 MiB blocks of the store, of which some are written, read and
// emptied at once: 40 MiB is five of them.
const Burst = 40 << 20

// Samples is how many looks make a [Window].
const Samples = 30

// Limit decides the memory limit from what the collector found alive. The zero value has
// seen nothing. It is not safe for concurrent use.
type Limit struct {
	live []int64
}

// Next takes the bytes that were alive at the last collection, and the percentage by which
// the heap grows until the next one, and returns the limit in bytes.
func (l *Limit) Next(live int64, percent int) int64 {
	if l.live = append(l.live, live); len(l.live) > Samples {
		l.live = slices.Delete(l.live, 0, 1)
	}
	rest := slices.Min(l.live)
	return rest + rest/100*int64(percent) + Burst
}
