package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

// leaseOf returns the record of the lease of the target "local".
func (b *bench) leaseOf() (v events.LeaseView) {
	b.t.Helper()
	for line := range strings.Lines(b.run("bus", "leases", "--dir", b.store(), "--json")) {
		var l events.LeaseView
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			b.t.Fatalf("line %q: %v", line, err)
		}
		if l.Key.Kind == events.LeaseTarget && l.Key.Name == "local" {
			v = l
		}
	}
	return v
}

// takenBy waits until a principal holds the target under a new fence.
func (b *bench) takenBy(name events.PrincipalName, after events.Fence, within time.Duration) events.Fence {
	b.t.Helper()
	var l events.LeaseView
	b.await("the target to be held by "+string(name), within, func() bool {
		l = b.leaseOf()
		return l.Holder == name && l.State == events.LeaseHeld && after.Less(l.Fence)
	})
	return l.Fence
}

func (b *bench) addExecutor(name string) {
	b.t.Helper()
	b.run("bus", "user", "add", name, "--role", "executor", "--profile", "default", "--out", b.creds(name), "--dir", b.store())
}

// executor starts an executor whose lease has a ttl of 3 s.
func (b *bench) executor(name string, args ...string) *process {
	b.t.Helper()
	return b.start("", "executor", append([]string{"--url", b.url(), "--creds", b.creds(name), "--lease-ttl", "3s"}, args...)...)
}

// withExecutor is withSession with an executor that has a short lease.
func withExecutor(t *testing.T) (*bench, *process, events.Fence) {
	t.Helper()
	b := newBench(t)
	b.addExecutor("ex2")
	b.serving()
	a := b.executor("ex")
	fence := b.takenBy("ex", events.Fence{}, 20*time.Second)
	first := b.start("echo first\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	if code := first.exit(30 * time.Second); code != 0 {
		t.Fatalf("the first turn exited %d", code)
	}
	return b, a, fence
}

// TestCase_G2_AStoppedExecutorActsNoMoreWhenItIsContinued: the executor is stopped for 8 s,
// with a ttl of 3 s. While the bus takes it for alive it is ordered to start, to type and to
// stop. Another takes the target within the ttl and a second. Continued, the first carries
// none of it out, and ends what it ran, since another has the target now.
func TestCase_G2_AStoppedExecutorActsNoMoreWhenItIsContinued(t *testing.T) {
	t.Parallel()
	b, a, fence := withExecutor(t)
	log, marker := filepath.Join(b.dir, "log"), filepath.Join(b.dir, "marker-file-g2")
	script := "trap '' HUP; trap 'echo term >> " + log + "; exit 0' TERM; echo ready; while :; do read -t 0.1 x && echo \"read $x\" >> " + log + "; done"
	id := strings.TrimSpace(b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--pty", "--", "/bin/bash", "-c", script))
	tty, shown, _ := b.onTerminal("attach", "cli:local", id, "--type", "--dir", b.store())
	b.await("the command", 20*time.Second, func() bool { return strings.Contains(shown.String(), "ready") })
	b.executor("ex2")

	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--", "touch", marker)
	if _, err := tty.Write([]byte("late\r")); err != nil {
		t.Fatal(err)
	}
	b.run("bus", "kill", "cli:local", id, "--grace", "1s", "--dir", b.store())
	b.takenBy("ex2", fence, 10*time.Second)
	if took := time.Since(stopped); took > 4*time.Second {
		t.Errorf("the newcomer had the target after %v, want the ttl of 3 s and one more at most", took)
	}
	other := strings.TrimSpace(b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--", "sleep", "300"))
	b.away(8*time.Second - time.Since(stopped))
	if _, err := os.Stat(log); err == nil {
		t.Error("the command was acted on while its executor was stopped")
	}
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"exec refused", "another holds its target"} {
		b.await("the executor to say "+said, 20*time.Second, func() bool { return strings.Contains(a.stderr.String(), said) })
	}
	b.await("the end of what it ran", 20*time.Second, func() bool { return fileHolds(log, "term") })
	b.away(time.Second) // for whatever else it might do
	if fileHolds(log, "late") {
		t.Error("it typed")
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it started a process")
	}
	if out := b.run("bus", "ps", "--dir", b.store()); !strings.Contains(out, other) || strings.Contains(out, id) {
		t.Errorf("what runs is\n%s", out)
	}
	if n := count(b.recordOf("cli:local"), "exec.lost"); n != 2 {
		t.Errorf("%d execs were lost, want the one that ran and the one that was ordered", n)
	}
	if out := b.run("bus", "replay", "_profile", "--dir", b.store()); !strings.Contains(out, "lease.taken_over") {
		t.Errorf("the takeover is not on record:\n%s", out)
	}
}

func fileHolds(file, text string) bool {
	body, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(body), text)
}

func TestCase_G5_TheLeaseOfAKilledExecutorIsTakenInTime(t *testing.T) {
	t.Parallel()
	t.Run("by one that waits", func(t *testing.T) {
		t.Parallel()
		b, a, fence := withExecutor(t)
		b.executor("ex2")
		b.away(time.Second) // it waits and is refused
		a.kill()
		killed := time.Now()
		b.takenBy("ex2", fence, 10*time.Second)
		if took := time.Since(killed); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("by the same started anew", func(t *testing.T) {
		t.Parallel()
		b, a, fence := withExecutor(t)
		a.kill()
		killed := time.Now()
		b.executor("ex")
		b.takenBy("ex", fence, 10*time.Second)
		if took := time.Since(killed); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// countingCaller counts the renewals that are asked for.
type countingCaller struct {
	*client.Conn
	began time.Time
	mu    sync.Mutex
	asked map[int]int // by second since began
	first map[events.LeaseKey]time.Duration
}

func (c *countingCaller) Do(ctx context.Context, t events.Type, data, answer any) error {
	err := c.Conn.Do(ctx, t, data, answer)
	if d, ok := data.(events.RenewLease); ok && err == nil {
		at := time.Since(c.began)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked[int(at/time.Second)] += len(d.Leases)
		for _, l := range d.Leases {
			if _, known := c.first[l.Key]; !known {
				c.first[l.Key] = at
			}
		}
	}
	return err
}

// TestCase_G7_OnARealBus: the case at a fifth of its time. 1,000 leases of 12 s, a bus that
// is restarted at second 6: none is lost, none is renewed late, and no second after the
// restart has more than 5 x 100 renewals.
func TestCase_G7_OnARealBus(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bus := b.serving()
	creds, err := client.ReadCredentials(b.creds("ex"))
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	conn, err := client.Connect(t.Context(), client.Config{URL: b.url(), Credentials: creds, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &countingCaller{Conn: conn, asked: make(map[int]int), first: make(map[events.LeaseKey]time.Duration)}
	keep := client.NewKeeper(client.KeeperConfig{
		Caller: c, Instance: conn.Instance(), NATS: conn.NATS(), Logger: quiet,
		OnLost: func(h *client.Held) { t.Errorf("%s was lost", h.Key()) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	const n, ttl = 1000, 12 * time.Second
	c.began = time.Now()
	for i := range 20 {
		work.Go(func() {
			for j := i; j < n; j += 20 {
				key := events.LeaseKey{Profile: "default", Kind: events.LeaseTarget, Name: fmt.Sprintf("t%d", j)}
				if _, err := keep.Acquire(ctx, key, client.LeaseTerms{TTL: ttl}); err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
			}
		})
	}
	work.Wait()
	took := time.Since(c.began)
	work.Go(func() { keep.Run(ctx) })
	b.away(6*time.Second - took)
	bus.terminate()
	b.serving()
	b.away(14 * time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	late := time.Duration(0)
	for _, at := range c.first {
		late = max(late, at)
	}
	if len(c.first) != n || late > took+10*time.Second {
		t.Errorf("%d of %d leases were renewed, the last after %v", len(c.first), n, late)
	}
	for s, asked := range c.asked {
		if s >= 6 && asked > 500 {
			t.Errorf("%d renewals in second %d", asked, s)
		}
	}
	t.Logf("acquired in %v, the last first renewal after %v; renewals by second: %v", took, late, c.asked)
}
