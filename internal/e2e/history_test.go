package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"keryx/client"
	"keryx/events"
)

const (
	// historyTime is how long one history is disturbed.
	historyTime = 10 * time.Second
	// historyTTL is that of its leases.
	historyTTL = 2 * time.Second
	// historyHolders are the processes that want the leases.
	historyHolders = 4
	// aheadBy is how much further the boot clock of a holder in a time namespace is.
	aheadBy = 100_000 * time.Second
)

// histories is how many there are; KERYX_TEST_RUNS asks for another number.
func histories(t *testing.T) int {
	t.Helper()
	v, ok := os.LookupEnv("KERYX_TEST_RUNS")
	if !ok {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("KERYX_TEST_RUNS=%q is no number of runs", v)
	}
	return n
}

// TestLeasesAreLinearizable: processes that hold leases, act under them and give them back
// are stopped, continued and killed; their links are slow, swallow one way, and break; the
// bus is killed, stopped and started, and takes leases away. What they saw must be explained
// by one lease that has one holder at a time, who alone acts.
func TestLeasesAreLinearizable(t *testing.T) {
	t.Parallel()
	for run := range histories(t) {
		seed := uint64(time.Now().UnixNano())
		if !t.Run(fmt.Sprintf("history %d", run+1), func(t *testing.T) { disturb(t, seed) }) {
			t.Logf("the seed of its disturbances is %d", seed)
			return
		}
	}
}

func disturb(t *testing.T, seed uint64) {
	t.Helper()
	d := &disturbance{bench: newBench(t), dice: rand.New(rand.NewPCG(seed, 1)), faults: make(map[string]int)}
	d.bus = d.serving()
	for i := range historyHolders {
		name := fmt.Sprintf("h%d", i)
		d.run("bus", "user", "add", name, "--role", "executor", "--profile", "default", "--out", d.creds(name), "--dir", d.store())
		d.holders = append(d.holders, &holder{name: name, link: newProxy(t, d.addr), ahead: time.Duration(i%2) * aheadBy})
		d.begin(d.holders[i])
	}
	d.away(time.Second)
	for _, key := range d.keys() { // so that each lease has two holders at least
		d.revoke(key)
	}
	for end := time.Now().Add(historyTime); time.Now().Before(end); {
		d.away(time.Duration(100+d.dice.IntN(400)) * time.Millisecond)
		d.fault()
	}
	for _, h := range d.holders {
		h.link.flow()
	}
	d.away(3 * historyTTL / 2)
	d.judge(t)
}

// disturbance is a history in the making.
type disturbance struct {
	*bench
	dice    *rand.Rand
	bus     *process
	holders []*holder
	logs    []holderLog
	own     []leaseOp // the operator's
	faults  map[string]int
}

type holder struct {
	name  string
	link  *proxy
	ahead time.Duration
	proc  *process
	log   string
}

type holderLog struct {
	file  string
	ahead time.Duration
}

func (d *disturbance) keys() []events.LeaseKey {
	return []events.LeaseKey{
		{Profile: "default", Kind: events.LeaseTarget, Name: "one"},
		{Profile: "default", Kind: events.LeaseTarget, Name: "two"},
	}
}

// begin starts a holder's process, each other one with a boot clock of its own.
func (d *disturbance) begin(h *holder) {
	d.t.Helper()
	h.log = filepath.Join(d.dir, fmt.Sprintf("%s-%d.jsonl", h.name, len(d.logs)))
	order, err := json.Marshal(holderOrder{
		URL: h.link.url(), Creds: d.creds(h.name), Log: h.log, Keys: d.keys(), TTL: historyTTL, Seed: d.dice.Uint64(),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	if h.ahead > 0 && !timeNamespaces() {
		h.ahead = 0
		d.t.Log("no time namespaces here: all holders have one clock")
	}
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	argv := []string{self}
	if h.ahead > 0 {
		argv = []string{"unshare", "--time", "--boottime", fmt.Sprint(int(h.ahead / time.Second)), self}
	}
	h.proc = d.startPath([]string{roleVar + "=holder", holderVar + "=" + string(order)}, "", argv[0], argv[1:]...)
	d.logs = append(d.logs, holderLog{h.log, h.ahead})
}

func timeNamespaces() bool {
	return exec.Command("unshare", "--time", "--boottime", "1", "true").Run() == nil
}

// signal reaches the holder itself, which may be a child of what was started. One that has
// not said its number yet is left alone.
func (h *holder) signal(s syscall.Signal) {
	body, err := os.ReadFile(h.log)
	if err != nil {
		return
	}
	if _, pid, err := history(string(body), 0); err == nil && pid > 0 {
		_ = syscall.Kill(pid, s) // it may have ended by itself
	}
}

// victim is who something happens to: mostly one that holds a lease.
func (d *disturbance) victim() *holder {
	names := make(map[events.PrincipalName]bool)
	if d.dice.IntN(4) > 0 {
		for line := range strings.Lines(d.run("bus", "leases", "--dir", d.store(), "--json")) {
			var l events.LeaseView
			if json.Unmarshal([]byte(line), &l) == nil && l.State == events.LeaseHeld {
				names[l.Holder] = true
			}
		}
	}
	for _, i := range d.dice.Perm(len(d.holders)) {
		if h := d.holders[i]; len(names) == 0 || names[events.PrincipalName(h.name)] {
			return h
		}
	}
	return d.holders[0]
}

// fault does one thing that must do no harm.
func (d *disturbance) fault() {
	h := d.victim()
	kinds := []string{
		"stop", "stop", "stop", "stop", "kill", "kill", "slow", "slow", "block", "block", "hole", "hole", "hole", "cut", "flow", "flow", "flow",
		"bus killed", "bus stopped", "revoke",
	}
	kind := kinds[d.dice.IntN(len(kinds))]
	d.faults[kind]++
	switch kind {
	case "stop": // for less than the ttl, or for more
		h.signal(syscall.SIGSTOP)
		d.away(time.Duration(200+d.dice.IntN(2500)) * time.Millisecond)
		h.signal(syscall.SIGCONT)
	case "kill":
		h.signal(syscall.SIGKILL)
		h.proc.kill()
		d.begin(h)
	case "slow":
		h.link.slow(time.Duration(20+d.dice.IntN(600)) * time.Millisecond)
	case "block":
		h.link.block(d.dice.IntN(2))
	case "hole": // both ways, for longer than it may trust its leases
		h.link.block(toBus)
		h.link.block(fromBus)
		d.away(2 * historyTTL)
		h.link.flow()
	case "cut":
		h.link.cut()
	case "flow":
		h.link.flow()
	case "bus killed":
		d.bus.kill()
		d.away(time.Duration(d.dice.IntN(1500)) * time.Millisecond)
		d.bus = d.serving()
	case "bus stopped":
		d.bus.terminate()
		d.bus = d.serving()
	case "revoke":
		d.revoke(d.keys()[d.dice.IntN(2)])
	}
}

// revoke takes a lease away by the command.
func (d *disturbance) revoke(of events.LeaseKey) {
	key := of.String()
	op := leaseOp{Kind: "revoke", Key: key, Instance: "operator", Call: client.BootTime()}
	p := d.start("", "bus", "lease", "revoke", key, "--reason", "test", "--dir", d.store(), "--json")
	code := p.exit(30 * time.Second)
	var a events.RevokedLease
	switch {
	case code == 0 && json.Unmarshal([]byte(p.stdout.String()), &a) == nil:
		op.Result, op.Holder, op.Granted = opDone, a.Instance, a.Fence
	case strings.Contains(p.stderr.String(), "unknown_lease"):
		op.Result = opNobody
	}
	op.Return = client.BootTime()
	d.own = append(d.own, op)
}

// judge reads what all did and saw.
func (d *disturbance) judge(t *testing.T) {
	t.Helper()
	for _, h := range d.holders {
		h.signal(syscall.SIGKILL)
		h.proc.kill()
	}
	ops := d.own
	for _, l := range d.logs {
		body, err := os.ReadFile(l.file)
		if err != nil {
			continue // killed before it began
		}
		of, _, err := history(string(body), l.ahead)
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, of...)
	}
	seen := make(map[string]int)
	holders := make(map[events.Instance]bool)
	for _, op := range ops {
		seen[strings.TrimSpace(op.Kind+" "+op.Result)]++
		if op.Kind == "acquire" && op.Result == opDone {
			holders[op.Instance] = true
		}
	}
	t.Logf("%d operations by %d holders: %v; faults: %v", len(ops), len(holders), seen, d.faults)
	if seen["acquire done"] < 3 || seen["act done"] < 20 || len(holders) < 2 {
		t.Errorf("too little happened to judge")
	}
	began := time.Now()
	if got := linearizable(ops, time.Minute); got != porcupine.Ok {
		kept := filepath.Join(os.TempDir(), fmt.Sprintf("keryx-history-%d.json", time.Now().UnixNano()))
		if body, err := json.Marshal(ops); err == nil && os.WriteFile(kept, body, 0o600) == nil {
			t.Logf("the history is kept in %s", kept)
		}
		t.Errorf("the history is %s", got)
	}
	t.Logf("checked in %v", time.Since(began).Round(time.Millisecond))
}
