package authority_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/client"
	"keryx/events"
)

// BenchmarkCommandToFollower compares a command, from its sending to the durable event
// in a live follower's hands, with a raw synced JetStream publish of as many bytes in
// the same run (design section 11: at most 2 x at p50); and the same with 10,000 more
// followers of other sessions.
func BenchmarkCommandToFollower(b *testing.B) {
	bus := startBus(b)
	b.Run("bus", func(b *testing.B) { commandToFollower(b, bus, 0) })
	b.Run("bus with 10000 followers", func(b *testing.B) { commandToFollower(b, bus, 10_000) })
	js := rawStream(b, bus)
	body := make([]byte, 700) // about what the event has
	b.Run("raw", func(b *testing.B) {
		p50(b, func() {
			if _, err := js.Publish(b.Context(), "raw.x", body); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func commandToFollower(b *testing.B, bus *bus, others int) {
	b.Helper()
	gw := bus.connect("gw", events.RoleGateway)
	crowd := bus.connect("crowd", events.RoleObserver)
	for i := range others {
		sub, err := crowd.NATS().Subscribe(events.LiveSubject(profile, events.Scope(fmt.Sprint("other-", i))), func(*nats.Msg) {})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	id := register(b, gw, events.NewID(), events.Policy{})
	live := make(chan *nats.Msg, 64)
	sub, err := gw.NATS().ChanSubscribe(events.LiveAll(profile), live)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	n := 0
	p50(b, func() {
		if n++; n%900 == 0 { // the queue of a session is bounded
			id = register(b, gw, events.NewID(), events.Policy{})
		}
		submit(b, gw, string(id), "a message")
		for wait(b, "the event", live).Header.Get("ce-type") != string(events.TypeContinuationQueued) {
		}
	})
}

// p50 times fn and reports the median.
func p50(b *testing.B, fn func()) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		fn()
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
}

// rawStream makes a plain synced stream on the bus's own server.
func rawStream(b *testing.B, bus *bus) jetstream.JetStream {
	b.Helper()
	nc, err := bus.node.Broker().System("bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "RAW", Subjects: []string{"raw.*"}}); err != nil {
		b.Fatal(err)
	}
	return js
}

// BenchmarkAppends compares commands a second from so many sessions at once with raw
// synced publishes of as many publishers in the same run (design section 11: at least
// 70 % at 16, 3 x at 256).
func BenchmarkAppends(b *testing.B) {
	bus := startBus(b)
	js := rawStream(b, bus)
	body := make([]byte, 700)
	for _, sessions := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(sessions, " sessions"), func(b *testing.B) {
			gw := bus.connect("gw", events.RoleGateway)
			ids := make([]events.SessionID, sessions)
			for i := range ids {
				ids[i] = register(b, gw, events.NewID(), events.Policy{})
			}
			b.ResetTimer()
			b.ReportMetric(rate(sessions, max(b.N, sessions), func(s, i int) error { return alternate(b.Context(), gw, ids[s], i) }), "appends/s")
		})
		b.Run(fmt.Sprint(sessions, " raw"), func(b *testing.B) {
			b.ReportMetric(rate(sessions, max(b.N, sessions), func(s, _ int) error {
				_, err := js.Publish(b.Context(), "raw."+strconv.Itoa(s), body)
				return err
			}), "appends/s")
		})
	}
}

// alternate submits, and empties the session before its queue is full.
func alternate(ctx context.Context, gw *client.Conn, id events.SessionID, i int) error {
	if i%900 == 899 {
		return gw.Do(ctx, events.CmdSessionFinalize, events.Finalize{To: string(id), Reason: "bench"}, nil)
	}
	return gw.Do(ctx, events.CmdContinuationSubmit, events.Submit{To: string(id), Body: events.Body{Text: "a message"}}, nil)
}

// rate runs total calls from so many goroutines and returns how many there were a second.
func rate(workers, total int, call func(worker, i int) error) float64 {
	var wg sync.WaitGroup
	var done atomic.Int64
	begun := time.Now()
	for w := range workers {
		wg.Go(func() {
			for i := range total / workers {
				if call(w, i) == nil {
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begun).Seconds()
}
