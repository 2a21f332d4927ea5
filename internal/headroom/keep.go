package headroom

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Window is the time over which the least memory counts as that at rest.
const Window = Samples * time.Second

const liveHeap = "/gc/heap/live:bytes"

// Keep moves the memory limit of this process until ctx ends, and then takes it away.
// percent is that of the collector, as in [debug.SetGCPercent].
func Keep(ctx context.Context, percent int) {
	before := debug.SetMemoryLimit(-1) // only asks
	defer debug.SetMemoryLimit(before)
	tick := time.NewTicker(Window / Samples)
	defer tick.Stop()
	var limit Limit
	for {
		sample := []metrics.Sample{{Name: liveHeap}}
		metrics.Read(sample)
		if v := sample[0].Value; v.Kind() == metrics.KindUint64 {
			debug.SetMemoryLimit(limit.Next(int64(v.Uint64()), percent)) //nolint:gosec // no heap has 2^63 bytes
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
