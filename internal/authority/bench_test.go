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
// the same run (design section 11: at most 2 x at p50).
func BenchmarkCommandToFollower(b *testing.B) {
	bus := startBus(b)
	gw := bus.connect("gw", events.RoleGateway)
	id := register(b, gw, "bench", events.Policy{})
	live := make(chan *nats.Msg, 64)
	sub, err := gw.NATS().ChanSubscribe(events.LiveAll(profile), live)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	js := rawStream(b, bus)
	body := make([]byte, 700) // about what the event has
	n := 0
	var ours, raw []time.Duration
	for b.Loop() {
		if n++; n%900 == 0 { // the queue of a session is bounded
			id = register(b, gw, fmt.Sprintf("bench:%d", n), events.Policy{})
		}
		begun := time.Now()
		submit(b, gw, string(id), "a message")
		for wait(b, "the event", live).Header.Get("ce-type") != string(events.TypeContinuationQueued) {
		}
		ours = append(ours, time.Since(begun))
		begun = time.Now()
		if _, err := js.Publish(b.Context(), "raw.x", body); err != nil {
			b.Fatal(err)
		}
		raw = append(raw, time.Since(begun))
	}
	p50 := func(ds []time.Duration) float64 {
		slices.Sort(ds)
		return float64(ds[len(ds)/2].Microseconds())
	}
	b.ReportMetric(p50(ours), "us-command")
	b.ReportMetric(p50(raw), "us-raw")
	b.ReportMetric(p50(ours)/p50(raw), "ratio")
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
// 70 % at 16).
func BenchmarkAppends(b *testing.B) {
	for _, sessions := range []int{1, 16, 64, 256} {
		b.Run(strconv.Itoa(sessions), func(b *testing.B) {
			bus := startBus(b)
			gw := bus.connect("gw", events.RoleGateway)
			ids := make([]events.SessionID, sessions)
			for i := range ids {
				ids[i] = register(b, gw, fmt.Sprintf("bench:%d", i), events.Policy{})
			}
			js := rawStream(b, bus)
			body := make([]byte, 700)
			total := max(b.N, sessions)
			ours := rate(sessions, total, func(s, i int) error { return alternate(b.Context(), gw, ids[s], i) })
			raw := rate(sessions, total, func(s, _ int) error {
				_, err := js.Publish(b.Context(), "raw."+strconv.Itoa(s), body)
				return err
			})
			b.ReportMetric(ours, "commands/s")
			b.ReportMetric(raw, "raw/s")
			b.ReportMetric(100*ours/raw, "%")
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
