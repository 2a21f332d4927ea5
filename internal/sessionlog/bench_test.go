package sessionlog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"keryx/events"
	"keryx/internal/bustest"
	"keryx/internal/sessionlog"
)

// timed runs fn b.N times and reports its median.
func timed(b *testing.B, fn func()) {
	b.Helper()
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		begun := time.Now()
		fn()
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
}

// BenchmarkAppend sets an append with expectation beside JetStream's own publish, both
// synced, both of the same message.
func BenchmarkAppend(b *testing.B) {
	l, bus := open(b)
	js, err := jetstream.New(bustest.System(b, bus))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("raw", func(b *testing.B) {
		m := message(b, "raw", 1, nil)
		timed(b, func() {
			if _, err := js.PublishMsg(b.Context(), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("append", func(b *testing.B) {
		last, err := l.LastSequence(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		m := message(b, events.Scope(fmt.Sprintf("s%d", last)), 1, nil)
		var seq events.Sequence
		timed(b, func() {
			m.Expect = &seq
			next, err := l.Append(b.Context(), m)
			if err != nil {
				b.Fatal(err)
			}
			seq = next
		})
	})
	b.Run("batch of 2", func(b *testing.B) {
		timed(b, func() {
			if _, err := l.AppendBatch(b.Context(), []sessionlog.Message{message(b, "x", 1, nil), message(b, "y", 1, nil)}); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkPage sets the replay of 1,000 events beside JetStream's own batch get.
func BenchmarkPage(b *testing.B) {
	l, bus := open(b)
	js, err := jetstream.New(bustest.System(b, bus))
	if err != nil {
		b.Fatal(err)
	}
	const events = 1000
	for i := range 20 { // spread over the stream, as sessions are
		ms := make([]sessionlog.Message, 0, events)
		for j := range events {
			ms = append(ms, message(b, scopeOf(j%20), 1, nil))
		}
		if _, err := l.AppendBatch(b.Context(), ms); err != nil {
			b.Fatalf("batch %d: %v", i, err)
		}
	}
	subject := subjectOf(scopeOf(7))
	b.Run("raw", func(b *testing.B) {
		timed(b, func() {
			got, err := jetstreamext.GetBatch(b.Context(), js, "KX_LOG", events, jetstreamext.GetBatchSubject(subject), jetstreamext.GetBatchSeq(1))
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for _, err := range got {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != events {
				b.Fatalf("%d messages", n)
			}
		})
	})
	b.Run("page", func(b *testing.B) {
		timed(b, func() {
			if got, _, err := l.Page(b.Context(), subject, 1, events, 0); err != nil || len(got) != events {
				b.Fatalf("%d messages, %v", len(got), err)
			}
		})
	})
}

// BenchmarkScan reads a log of 100,000 events in 5,000 scopes.
func BenchmarkScan(b *testing.B) {
	l, _ := open(b)
	const n = 100_000
	ms := make([]sessionlog.Message, 0, 1000)
	for i := range n {
		ms = append(ms, message(b, scopeOf(i%5000), 1, nil))
		if len(ms) == cap(ms) {
			if _, err := l.AppendBatch(b.Context(), ms); err != nil {
				b.Fatal(err)
			}
			ms = ms[:0]
		}
	}
	for b.Loop() {
		got := 0
		if err := l.Scan(b.Context(), ">", 1, func(sessionlog.Stored) error { got++; return nil }); err != nil || got != n {
			b.Fatalf("%d messages, %v", got, err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func scopeOf(i int) events.Scope { return events.Scope(fmt.Sprintf("s%d", i)) }
