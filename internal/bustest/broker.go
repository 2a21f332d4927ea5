package bustest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/internal/broker"
)

// stopTime bounds how long a broker may take to stop at the end of its test.
const stopTime = 20 * time.Second

// Option changes a broker's configuration before it starts.
type Option func(*broker.Config)

// Dir serves a directory of the caller's, for tests that stop a broker and start
// another on the same store.
func Dir(dir string) Option { return func(c *broker.Config) { c.Dir = dir } }

// Listen serves host:port instead of a free port.
func Listen(addr string) Option { return func(c *broker.Config) { c.Listen = addr } }

// Broker starts a broker on t.TempDir and stops it when t ends; a test may stop it
// itself before. Its log goes to the test's output, with -v the server's debug lines too.
func Broker(t testing.TB, opts ...Option) *broker.Broker {
	t.Helper()
	out := &testOutput{t: t}
	level := slog.LevelInfo
	if testing.Verbose() {
		level = slog.LevelDebug
	}
	cfg := broker.Config{Logger: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	b, err := broker.Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("start broker: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := b.Stop(ctx); err != nil {
			t.Errorf("stop broker: %v", err)
		}
		out.close()
	})
	return b
}

// System returns a connection with the authority's rights, closed when t ends.
func System(t testing.TB, b *broker.Broker) *nats.Conn {
	t.Helper()
	nc, err := b.System(t.Name())
	if err != nil {
		t.Fatalf("connect system: %v", err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// testOutput writes to a test's output until the test is over: a line that comes later
// would panic.
type testOutput struct {
	mu   sync.Mutex
	t    testing.TB
	over bool
}

// Write implements io.Writer.
func (o *testOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return len(b), nil
	}
	return o.t.Output().Write(b)
}

func (o *testOutput) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}
