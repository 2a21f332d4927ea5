package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

// The aim is 150 ms on an idle machine; the bound is wide because tests share theirs.
func TestReadyOnAnEmptyStoreWithinBound(t *testing.T) {
	began := time.Now()
	b := bustest.Broker(t)
	ready := time.Since(began)
	nc, err := nats.Connect(b.URL(), nats.Timeout(2*time.Second))
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("an anonymous client got %v, want an authorization error", err)
	}
	if nc != nil {
		nc.Close()
	}
	t.Logf("ready after %v", ready)
	if ready > 5*time.Second {
		t.Errorf("ready after %v", ready)
	}
}

func TestStopIsQuickIdempotentAndLeavesNoRunFiles(t *testing.T) {
	b := bustest.Broker(t)
	creds := bustest.Principal(t, b, "main", "shell", events.RoleHost)
	bustest.Connect(t, b, creds, nats.InProcessServer(nil), url(b), nats.NoReconnect())
	began := time.Now()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := b.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	t.Logf("stopped after %v", took)
	if took > 5*time.Second {
		t.Errorf("stop with a remote client took %v", took)
	}
	left, err := os.ReadDir(filepath.Join(b.Dir(), "run"))
	if err != nil || len(left) != 0 {
		t.Errorf("run directory holds %v, %v; want nothing", left, err)
	}
}

func TestStopIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	over := errors.New("no time left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if err := b.Stop(ctx); err != nil && !errors.Is(err, over) {
		t.Errorf("stop with a context that has ended: %v", err)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

func TestDirectoryIsClosedToOthersAndRunFilesTellOfTheProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "bus")
	b := bustest.Broker(t, bustest.Dir(dir))
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Join(dir, "run"): 0o700,
		filepath.Join(dir, "run", "url"): 0o600, filepath.Join(dir, "run", "operator.sock"): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Errorf("stat: %v", err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "run", "url"))
	if err != nil || strings.TrimSpace(string(text)) != b.URL() {
		t.Errorf("run/url is %q, %v; want %s", text, err, b.URL())
	}
}

func TestConfigurationMistakesAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]broker.Config{
		"no directory":     {},
		"address unclear":  {Dir: t.TempDir(), Listen: "localhost"},
		"port not numeric": {Dir: t.TempDir(), Listen: "127.0.0.1:http"},
		"store too small":  {Dir: t.TempDir(), MaxStore: 1 << 20},
		"no such sync":     {Dir: t.TempDir(), Sync: 7},
	} {
		if b, err := broker.Start(t.Context(), cfg); err == nil {
			t.Errorf("%s: started", name)
			_ = b.Stop(t.Context())
		}
	}
}

func TestAPortInUseIsAnErrorAndReleasesTheDirectory(t *testing.T) {
	t.Parallel()
	first := bustest.Broker(t)
	dir := t.TempDir()
	addr := strings.TrimPrefix(first.URL(), "nats://")
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Listen: addr, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_ = b.Stop(t.Context())
		t.Fatal("two brokers listen on one port")
	}
	bustest.Broker(t, bustest.Dir(dir))
}

func TestSmallestStoreHasRoomForEveryStream(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t, func(c *broker.Config) { c.MaxStore = broker.MinMaxStore; c.Sync = broker.SyncInterval })
	js, err := jetstream.New(bustest.System(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "kx.log.main.s", []byte("x")); err != nil {
		t.Errorf("append: %v", err)
	}
}

// url makes a connection go over the network.
func url(b *broker.Broker) nats.Option {
	return func(o *nats.Options) error {
		o.Servers, o.InProcessServer = []string{b.URL()}, nil
		return nil
	}
}

func TestStoreMayGrowAndShrinkBetweenStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, size := range []int64{1 << 30, 16 << 30, broker.MinMaxStore, 1 << 30} {
		log := &lines{}
		b := bustest.Broker(t, bustest.Dir(dir), log.option, func(c *broker.Config) { c.MaxStore = size })
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		log = &lines{}
		began := time.Now()
		b = bustest.Broker(t, bustest.Dir(dir), log.option, func(c *broker.Config) { c.MaxStore = size })
		t.Logf("restart took %v", time.Since(began))
		if got := log.count("repaired"); got != 0 {
			t.Errorf("a second start with %d bytes repaired %d streams", size, got)
		}
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
