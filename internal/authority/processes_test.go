package authority_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/authority"
	"keryx/internal/bustest"
	"keryx/internal/leases"
	"keryx/internal/sessionlog"
)

// authorityEnv makes the test binary an authority on the server at this URL.
const authorityEnv = "KERYX_TEST_AUTHORITY"

// everybody lets anybody in as what the name says: gw-1 is a gateway.
type everybody struct{}

func (everybody) Lookup(p events.Profile, n events.PrincipalName) (events.Principal, bool) {
	role, _, _ := strings.Cut(string(n), "-")
	return events.Principal{Profile: p, Name: n, Role: events.Role(role)}, true
}

func (everybody) DefaultHosts(events.Profile) []events.PrincipalName { return nil }

// serveAuthority is the main function of an authority process. It says on standard
// output whenever it becomes active, and ends with SIGTERM.
func serveAuthority(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	log, err := sessionlog.Open(ctx, nc)
	if err != nil {
		return err
	}
	store, err := leases.OpenStore(ctx, nc)
	if err != nil {
		return err
	}
	a, err := authority.New(authority.Config{
		Conn: nc, Log: log, Leases: store, Registry: everybody{}, Generation: 1, AuthorityTTL: processTTL, CheckpointEvery: time.Second,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", os.Getpid()),
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for was := true; ; { // it says first that it stands by
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if now := a.Active(); now != was {
				was = now
				if _, err := fmt.Fprintln(os.Stdout, map[bool]string{true: "active", false: "standby"}[now]); err != nil {
					return err
				}
			}
		}
	}
}

// processTTL is that of the lease bus.authority here: the least there is.
const processTTL = 2 * time.Second

// worker is an authority process.
type worker struct {
	cmd    *exec.Cmd
	active chan struct{} // it said that it became active
	stands chan struct{} // it said that it stands by
	ended  chan struct{}
}

func startWorker(t *testing.T, url string) *worker {
	t.Helper()
	w := &worker{cmd: exec.Command(os.Args[0]), active: make(chan struct{}, 64), stands: make(chan struct{}, 64), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), authorityEnv+"="+url)
	w.cmd.Stderr = t.Output()
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "active" {
				w.active <- struct{}{}
			} else {
				w.stands <- struct{}{}
			}
		}
		_ = w.cmd.Wait() // a killed one has an error
	}()
	t.Cleanup(func() { w.signal(t, syscall.SIGKILL); <-w.ended })
	return w
}

func (w *worker) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

// awaitWord waits for one of its two words and returns how long that took.
func awaitWord(t *testing.T, word <-chan struct{}, within time.Duration) time.Duration {
	t.Helper()
	begun := time.Now()
	select {
	case <-word:
	case <-time.After(within):
		t.Fatalf("nothing said within %v", within)
	}
	return time.Since(begun)
}

// busy is how much longer a takeover may take here, on a machine with other work.
const busy = time.Second

// openServer serves the store of a bus to whoever comes: the authorities under test are
// processes of their own, which no bus lets in.
func openServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	b := bustest.Broker(t, bustest.Dir(dir)) // makes the streams
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "keryx", Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, AlwaysEnableNonce: true,
		JetStream: true, StoreDir: filepath.Join(dir, "store"), SyncAlways: true,
		JetStreamLimits: server.JSLimitOpts{DefaultMaxConsumers: -1}, JetStreamMaxStore: 1 << 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

// traffic submits from several goroutines and counts what was answered.
type traffic struct {
	mu      sync.Mutex
	answers map[events.SessionID]map[events.ReceiptID]events.Sequence
	n       atomic.Int64
}

func (tr *traffic) run(t *testing.T, gw *client.Conn, key string, over <-chan struct{}) {
	t.Helper()
	names := events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}
	s, err := gw.Register(t.Context(), names, events.Policy{})
	if err != nil {
		t.Errorf("register %s: %v", key, err)
		return
	}
	mine := map[events.ReceiptID]events.Sequence{}
	for i := 1; ; i++ {
		select {
		case <-over:
			tr.mu.Lock()
			tr.answers[s.Session] = mine
			tr.mu.Unlock()
			return
		default:
		}
		if i%500 == 0 { // the queue is bounded
			if _, err := gw.Finalize(t.Context(), key, "full"); err != nil {
				t.Errorf("finalize %s: %v", key, err)
			}
			continue
		}
		r, err := gw.Submit(t.Context(), events.Submit{To: key, Body: events.Body{Text: strconv.Itoa(i)}})
		if err != nil {
			t.Errorf("submit %d to %s: %v", i, key, err)
			return
		}
		mine[r.ID] = r.Sequence
		tr.n.Add(1)
	}
}

// check reads every session: ordinals are dense, no command has two events of a kind,
// and what was answered is where the answer says.
func (tr *traffic) check(t *testing.T, gw *client.Conn) {
	t.Helper()
	type once struct {
		command events.CommandID
		kind    events.Type
	}
	for id, answers := range tr.answers {
		seen := map[once]bool{}
		at := map[events.ReceiptID]events.Sequence{}
		for i, r := range record(t, gw, id.Scope()) {
			if int(r.Ordinal) != i+1 {
				t.Fatalf("session %s: ordinal %d at place %d", id, r.Ordinal, i+1)
			}
			if key := (once{r.Causation, r.Type}); r.Causation != "" && seen[key] {
				t.Errorf("session %s: command %s has two events %s", id, r.Causation, r.Type)
			} else {
				seen[key] = true
			}
			if d, err := events.DataOf[events.ContinuationQueued](r); err == nil && r.Type == events.TypeContinuationQueued {
				at[d.Item.Receipt] = r.Sequence
			}
		}
		for receipt, seq := range answers {
			if at[receipt] != seq {
				t.Errorf("session %s: %s was answered as sequence %d and is at %d", id, receipt, seq, at[receipt])
			}
		}
	}
}

// TestTwoAuthorityProcessesUnderFaultsWriteEachStepOnce kills, stops and continues the
// active one of two processes under load. KERYX_TEST_RUNS sets the number of faults.
func TestTwoAuthorityProcessesUnderFaultsWriteEachStepOnce(t *testing.T) {
	t.Parallel()
	faults := 3
	if n, err := strconv.Atoi(os.Getenv("KERYX_TEST_RUNS")); err == nil {
		faults = n
	}
	url := openServer(t)
	active := startWorker(t, url)
	awaitWord(t, active.stands, 10*time.Second)
	awaitWord(t, active.active, 10*time.Second)
	standby := startWorker(t, url)
	awaitWord(t, standby.stands, 10*time.Second)
	gw := connectURL(t, url, "gateway-1")
	tr := &traffic{answers: map[events.SessionID]map[events.ReceiptID]events.Sequence{}}
	over := make(chan struct{})
	var work sync.WaitGroup
	for i := range 6 {
		work.Go(func() { tr.run(t, gw, fmt.Sprint("k:", i), over) })
	}
	pause := func(d time.Duration) { <-time.After(d) }
	var worst time.Duration
	for range faults {
		pause(time.Second + rand.N(500*time.Millisecond)) // a standby looks twice a second
		kill := rand.N(2) == 0
		fault := map[bool]syscall.Signal{true: syscall.SIGKILL, false: syscall.SIGSTOP}[kill]
		t.Logf("%v process %d", fault, active.cmd.Process.Pid)
		active.signal(t, fault)
		worst = max(worst, awaitWord(t, standby.active, processTTL+time.Second+busy))
		answered := tr.n.Load()
		pause(rand.N(300 * time.Millisecond))
		former := active
		active = standby
		if standby = former; kill {
			standby = startWorker(t, url)
		} else {
			standby.signal(t, syscall.SIGCONT)
		}
		awaitWord(t, standby.stands, 10*time.Second)
		for deadline := time.After(20 * time.Second); tr.n.Load() == answered; pause(5 * time.Millisecond) {
			select {
			case <-deadline:
				t.Fatal("nothing is answered after the takeover")
			default:
			}
		}
	}
	close(over)
	work.Wait()
	tr.check(t, gw)
	t.Logf("%d answers over %d faults; the slowest takeover took %v", tr.n.Load(), faults, worst)
}

// connectURL connects a principal to a server that asks for no proof.
func connectURL(t *testing.T, url string, name events.PrincipalName) *client.Conn {
	t.Helper()
	creds, _, err := client.NewCredentials(events.Principal{Profile: profile, Name: name, Role: events.RoleGateway})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.Config{URL: url, Credentials: creds, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
