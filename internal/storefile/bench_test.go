package storefile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/storefile"
)

// BenchmarkScan reads a closed store of 100,000 messages of 300 bytes; it says how much the
// check adds to a start.
func BenchmarkScan(b *testing.B) {
	const messages = 100_000
	dir := b.TempDir()
	fill(b, dir, messages)
	for b.Loop() {
		r, err := storefile.Scan(b.Context(), dir, "KX_LOG")
		if err != nil || r.Messages != messages || len(r.Damages) > 0 {
			b.Fatalf("scanned %+v, %v", r, err)
		}
		b.SetBytes(r.Bytes)
	}
	b.ReportMetric(float64(messages)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// fill makes a store with messages of 100 sessions and closes it.
func fill(b *testing.B, dir string, messages int) {
	b.Helper()
	bus := bustest.Broker(b, bustest.Dir(dir), func(c *broker.Config) { c.Sync = broker.SyncInterval })
	nc := bustest.System(b, bus)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	for i := range messages {
		m := nats.NewMsg(fmt.Sprintf("kx.log.default.S%d", i%100))
		m.Header.Set("ce-type", "keryx.session.idle.v1")
		m.Data = make([]byte, 300)
		if _, err := js.PublishMsgAsync(m); err != nil {
			b.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		b.Fatal("the messages are not stored after a minute")
	}
	nc.Close()
	if err := bus.Stop(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
}
