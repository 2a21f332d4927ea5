package node_test

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"testing"
	"time"

	"keryx/internal/bustest"
	"keryx/internal/node"
)

// filled returns a directory whose store has so many sessions.
func filled(b *testing.B, sessions int) string {
	b.Helper()
	dir := b.TempDir()
	br := bustest.Broker(b, bustest.Dir(dir))
	bustest.Fill(b, br, sessions)
	if err := br.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	return dir
}

// up starts a bus and returns how long it took until it answers.
func up(b *testing.B, dir string) (*node.Node, time.Duration) {
	b.Helper()
	begun := time.Now()
	n, err := node.Start(b.Context(), node.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for limit := time.After(time.Minute); !n.Ready(); {
		select {
		case <-limit:
			b.Fatal("not ready within a minute")
		case <-time.After(100 * time.Microsecond):
		}
	}
	return n, time.Since(begun)
}

func down(b *testing.B, n *node.Node) {
	b.Helper()
	if err := n.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart compares the start of a store of 40,000 events in 2,000 sessions from
// its index with the start of an empty one, and with the start from the whole log.
func BenchmarkStart(b *testing.B) {
	full, empty := filled(b, 2000), filled(b, 0)
	n, whole := up(b, full)
	down(b, n) // writes the index
	b.Run("whole log", func(b *testing.B) { b.ReportMetric(float64(whole.Microseconds())/1000, "start-ms") })
	for name, dir := range map[string]string{"index": full, "empty": empty} {
		b.Run(name, func(b *testing.B) {
			var all time.Duration
			for range b.N {
				n, took := up(b, dir)
				down(b, n)
				all += took
			}
			b.ReportMetric(float64(all.Microseconds())/1000/float64(b.N), "start-ms")
		})
	}
}

// BenchmarkIdleSessions compares the memory of a bus with idle sessions with that of one
// without any.
func BenchmarkIdleSessions(b *testing.B) {
	for _, sessions := range []int{0, 10_000} {
		dir := filled(b, sessions)
		n, _ := up(b, dir)
		down(b, n) // writes the index
		b.Run(strconv.Itoa(sessions), func(b *testing.B) {
			n, _ := up(b, dir)
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapInuse+m.StackInuse)/(1<<20), "MiB")
			down(b, n)
		})
	}
}
