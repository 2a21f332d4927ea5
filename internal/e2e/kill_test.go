package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// event is a line of `bus replay --json`.
type event struct {
	Type    string          `json:"type"`
	Ordinal string          `json:"ordinal"`
	Trace   string          `json:"traceparent"`
	Cause   string          `json:"causationid"`
	Data    json.RawMessage `json:"data"`
}

// replay reads the record of the default key.
func (b *bench) replay() []event {
	b.t.Helper()
	var out []event
	for line := range strings.Lines(b.run("bus", "replay", "cli:local", "--dir", b.store(), "--json")) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.t.Fatalf("line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

// running reports whether the default key's session has a command that runs.
func (b *bench) running() bool {
	b.t.Helper()
	if !strings.Contains(b.run("bus", "sessions", "--dir", b.store(), "--json"), `"cli:local"`) {
		return false
	}
	return count(b.replay(), "exec.started") == 1
}

func count(es []event, short string) int {
	n := 0
	for _, e := range es {
		if e.Type == "keryx."+short+".v1" {
			n++
		}
	}
	return n
}

func (b *bench) away(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

func TestTheBusKilledInTheMiddleOfACommandLosesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ work, away time.Duration }{
		"a short outage":                    {work: 8 * time.Second, away: time.Second},
		"an outage longer than every lease": {work: 26 * time.Second, away: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			bus := b.serving()
			executor := b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
			seconds := time.Duration(tc.work / time.Second).Nanoseconds()
			script := "echo begun; i=0; while [ $i -lt " + itoa(seconds) + " ]; do sleep 1; i=$((i+1)); echo tick $i; done; echo ended\n"
			gateway := b.start(script, "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
			b.await("the command to run", 20*time.Second, b.running)
			bus.kill()
			b.away(tc.away)
			again := b.serving()
			if code := gateway.exit(tc.work + 60*time.Second); code != 0 {
				t.Errorf("the gateway exited %d", code)
			}
			want := "begun\n"
			for i := range seconds {
				want += "tick " + itoa(i+1) + "\n"
			}
			want += "ended\n"
			if got := gateway.stdout.String(); got != want {
				t.Errorf("the reply is %q, want %q", got, want)
			}
			if code := executor.terminate(); code != 0 && code != 143 {
				t.Errorf("the executor exited %d", code)
			}
			es := b.replay()
			for short, n := range map[string]int{
				"turn.started": 1, "turn.ended": 1, "exec.requested": 1, "exec.started": 1, "exec.exited": 1,
				"exec.lost": 0, "turn.reported_late": 0, "session.finalized": 0, "session.attached": 1,
			} {
				if got := count(es, short); got != n {
					t.Errorf("%d %s events, want %d", got, short, n)
				}
			}
			if code := again.terminate(); code != 0 && code != 143 {
				t.Errorf("the bus exited %d", code)
			}
		})
	}
}

func itoa(n int64) string {
	b, _ := json.Marshal(n) // an integer always has a JSON form
	return string(b)
}

func TestASecondBusOnADirectoryNamesTheHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bus := b.serving()
	second := b.start("", "bus", "serve", "--dir", b.store())
	if code := second.exit(20 * time.Second); code != 1 {
		t.Errorf("the second bus exited %d, want 1", code)
	}
	if msg := second.stderr.String(); !strings.Contains(msg, itoa(int64(bus.cmd.Process.Pid))) {
		t.Errorf("the error does not name the holder's process %d:\n%s", bus.cmd.Process.Pid, msg)
	}
	_ = b.run("bus", "sessions", "--dir", b.store()) // the first goes on
}

func TestTheKilledHostsTurnIsLostAndTheNextHostGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	first := b.start("sleep 60\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	b.await("the command to run", 20*time.Second, b.running)
	first.kill()
	second := b.start("echo after\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	if code := second.exit(60 * time.Second); code != 0 {
		t.Errorf("the second gateway exited %d", code)
	}
	if got := second.stdout.String(); got != "after\n" {
		t.Errorf("the reply is %q", got)
	}
	var outcomes []string
	for _, e := range b.replay() {
		if e.Type == "keryx.turn.ended.v1" {
			var d struct{ Outcome string }
			if err := json.Unmarshal(e.Data, &d); err != nil {
				t.Fatal(err)
			}
			outcomes = append(outcomes, d.Outcome)
		}
	}
	if strings.Join(outcomes, " ") != "lost completed" {
		t.Errorf("the turns ended %v, want lost, completed", outcomes)
	}
}

func TestTheKilledExecutorsCommandIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	executor := b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	gateway := b.start("sleep 40; echo never\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	b.await("the command to run", 20*time.Second, b.running)
	executor.kill()
	if code := gateway.exit(40 * time.Second); code != 1 {
		t.Errorf("the gateway exited %d, want 1 for a turn that failed", code)
	}
	es := b.replay()
	if count(es, "exec.lost") != 1 || count(es, "exec.exited") != 0 || count(es, "turn.ended") != 1 {
		t.Errorf("lost %d, exited %d, turns ended %d; want 1, 0, 1", count(es, "exec.lost"), count(es, "exec.exited"), count(es, "turn.ended"))
	}
}

func TestCase_D7_ARestartedExecutorEndsWhatItsDeadInstanceRan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	executor := b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	marker := filepath.Join(b.dir, "marker-file-d7")
	gateway := b.start("setsid sh -c 'sleep 8; touch "+marker+"' & sleep 40; echo never\n",
		"gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	b.await("the command to run", 20*time.Second, b.running)
	executor.kill()
	b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	if code := gateway.exit(40 * time.Second); code != 1 {
		t.Errorf("the gateway exited %d, want 1 for a turn that failed", code)
	}
	es := b.replay()
	if count(es, "exec.lost") != 1 || count(es, "exec.exited") != 0 {
		t.Errorf("lost %d, exited %d; want 1, 0", count(es, "exec.lost"), count(es, "exec.exited"))
	}
	b.away(9 * time.Second)
	if _, err := os.Stat(marker); err == nil {
		t.Error("what the dead executor ran went on")
	}
}

func TestUpKilledAndStartedAgainGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	up := b.start("sleep 50\n", "bus", "up", "--dir", b.store())
	b.await("the command to run", 20*time.Second, func() bool {
		_, err := os.Stat(filepath.Join(b.store(), "run", "url"))
		return err == nil && b.running()
	})
	up.kill()
	begun := time.Now()
	again := b.start("echo on\n", "bus", "up", "--dir", b.store())
	if code := again.exit(30 * time.Second); code != 0 {
		t.Errorf("the second run exited %d", code)
	}
	if got := again.stdout.String(); got != "on\n" {
		t.Errorf("the reply is %q", got)
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("the second run took %v: it waited for leases of the dead", took)
	}
	es := b.replay()
	if count(es, "session.finalized") != 0 || count(es, "session.registered") != 1 || count(es, "exec.lost") != 1 {
		t.Errorf("finalized %d, registered %d, execs lost %d; want 0, 1, 1",
			count(es, "session.finalized"), count(es, "session.registered"), count(es, "exec.lost"))
	}
}

func TestTraceContextGoesFromTheCommandIntoItsEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	up := b.start("echo traced\n", "bus", "up", "--dir", b.store())
	if code := up.exit(30 * time.Second); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, e := range b.replay() {
		if e.Cause != "" && !strings.HasPrefix(e.Trace, "00-") {
			t.Errorf("%s was caused by a command and has the trace context %q", e.Type, e.Trace)
		}
	}
}

func TestHealthIsServedOnLoopback(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	var addr string
	b.await("the address of the health server", 10*time.Second, func() bool {
		raw, err := os.ReadFile(filepath.Join(b.store(), "run", "http"))
		addr = strings.TrimSpace(string(raw))
		return err == nil && addr != ""
	})
	addr = strings.TrimPrefix(addr, "http://")
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Fatalf("health is served on %q, which is not loopback", addr)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		b.await(path+" to answer 200", 10*time.Second, func() bool {
			resp, err := http.Get("http://" + addr + path)
			if err != nil {
				return false
			}
			return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		})
	}
}
