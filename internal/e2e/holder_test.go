package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"keryx/client"
	"keryx/events"
)

// holderVar holds what this binary is to do in the role of a holder of leases.
const holderVar = "KERYX_TEST_HOLDER"

// holderOrder says what a holder is to do.
type holderOrder struct {
	URL, Creds, Log string
	Keys            []events.LeaseKey
	TTL             time.Duration
	Seed            uint64
}

// holderLine is a line of a holder's log: an operation when it begins, and when it ends.
type holderLine struct {
	PID int      `json:"pid,omitempty"` // the first line's
	N   int      `json:"n"`
	Op  *leaseOp `json:"op,omitempty"`
}

// opLog writes down what a holder does, so that nothing is missing when it is killed.
type opLog struct {
	mu  sync.Mutex
	out io.Writer
	n   int
}

// begin writes an operation before it is done.
func (l *opLog) begin(op leaseOp) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.line(holderLine{N: l.n, Op: &op})
	return l.n
}

// end writes it with its result.
func (l *opLog) end(n int, op leaseOp) {
	op.Return = client.BootTime()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line(holderLine{N: n, Op: &op})
}

func (l *opLog) line(v holderLine) {
	body, err := json.Marshal(v)
	if err == nil {
		_, err = l.out.Write(append(body, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "write the history:", err)
		os.Exit(1)
	}
}

// recorder is a connection whose lease commands are written down.
type recorder struct {
	*client.Conn
	log *opLog
}

// Do implements client.Caller.
func (r *recorder) Do(ctx context.Context, t events.Type, data, answer any) error {
	now := client.BootTime()
	switch d := data.(type) {
	case events.AcquireLease:
		op := leaseOp{Kind: "acquire", Key: d.Key.String(), Instance: d.Instance, TTL: time.Duration(d.TTLMS) * time.Millisecond, Call: now}
		n := r.log.begin(op)
		err := r.Conn.Do(ctx, t, data, answer)
		op.Result = resultOf(err)
		if err == nil {
			op.Granted = answer.(*events.LeaseAnswer).Fence
		}
		if e, ok := errors.AsType[*events.Error](err); ok {
			op.Holder = events.Instance(e.Details["instance"])
		}
		r.log.end(n, op)
		return err
	case events.ReleaseLease:
		op := leaseOp{Kind: "release", Key: d.Key.String(), Instance: d.Instance, Fence: d.Fence, Call: now}
		n := r.log.begin(op)
		err := r.Conn.Do(ctx, t, data, answer)
		op.Result = resultOf(err)
		r.log.end(n, op)
		return err
	case events.RenewLease:
		return r.renew(ctx, d, answer.(*events.LeaseRenewals), now)
	}
	return r.Conn.Do(ctx, t, data, answer)
}

func (r *recorder) renew(ctx context.Context, d events.RenewLease, answer *events.LeaseRenewals, now time.Duration) error {
	ops, numbers := make([]leaseOp, len(d.Leases)), make([]int, len(d.Leases))
	for i, ref := range d.Leases {
		ops[i] = leaseOp{Kind: "renew", Key: ref.Key.String(), Instance: d.Instance, Fence: ref.Fence, Call: now}
		numbers[i] = r.log.begin(ops[i])
	}
	err := r.Conn.Do(ctx, events.CmdLeaseRenew, d, answer)
	for i, ref := range d.Leases {
		for _, res := range answer.Results {
			switch {
			case err != nil || res.Key != ref.Key:
			case res.Error == nil:
				ops[i].Result = opDone
			default:
				ops[i].Result = resultOf(res.Error)
			}
		}
		r.log.end(numbers[i], ops[i])
	}
	return err
}

// resultOf is what an answer says for certain; empty when it may have been done.
func resultOf(err error) string {
	switch events.CodeOf(err) {
	case events.CodeLeaseHeld:
		return opHeld
	case events.CodeLeaseLost:
		return opLost
	case events.CodeLeaseRevoked:
		return opRevoked
	}
	if err == nil {
		return opDone
	}
	return ""
}

// holdLeases is the main function of a holder: it takes leases, acts under them, and gives
// some back, until it is killed.
func holdLeases() int {
	var o holderOrder
	if err := json.Unmarshal([]byte(os.Getenv(holderVar)), &o); err != nil {
		fmt.Fprintln(os.Stderr, "holder:", err)
		return 1
	}
	out, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "holder:", err)
		return 1
	}
	log := &opLog{out: out}
	log.line(holderLine{PID: os.Getpid()})
	c, err := connectHolder(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "holder:", err)
		return 1
	}
	r := &recorder{c, log}
	keep := client.NewKeeper(client.KeeperConfig{
		Caller: r, Instance: c.Instance(), NATS: c.NATS(), Logger: slog.New(slog.DiscardHandler),
		OnRegained: regains(o.Seed),
	})
	go keep.Run(context.Background()) // until the process is killed
	var all sync.WaitGroup
	for i, key := range o.Keys {
		all.Go(func() { useLease(keep, log, c.Instance(), key, o.TTL, rand.New(rand.NewPCG(o.Seed, uint64(i)))) })
	}
	all.Wait()
	return 0
}

// regains makes every other holder go on asking for a lease that lapsed.
func regains(seed uint64) func(*client.Held) {
	if seed%2 == 0 {
		return nil
	}
	return func(*client.Held) {}
}

func connectHolder(o holderOrder) (*client.Conn, error) {
	creds, err := client.ReadCredentials(o.Creds)
	if err != nil {
		return nil, err
	}
	for range 200 { // the bus may be away now
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		c, cerr := client.Connect(ctx, client.Config{URL: o.URL, Credentials: creds, Logger: slog.New(slog.DiscardHandler)})
		cancel()
		if err = cerr; err == nil {
			return c, nil
		}
		<-time.After(50 * time.Millisecond)
	}
	return nil, err
}

// useLease takes a lease again and again, unless it is taken away for good.
func useLease(keep *client.Keeper, log *opLog, inst events.Instance, key events.LeaseKey, ttl time.Duration, dice *rand.Rand) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		h, err := keep.Acquire(ctx, key, client.LeaseTerms{TTL: ttl})
		cancel()
		if err != nil {
			<-time.After(time.Duration(50+dice.IntN(150)) * time.Millisecond)
			continue
		}
		d := time.Duration(200+dice.IntN(3000)) * time.Millisecond
		if dice.IntN(3) == 0 {
			d = 4 * ttl // until it is lost, perhaps
		}
		actUnder(h, log, inst, d)
		if dice.IntN(3) == 0 {
			h.Forget() // as if it had died
			continue
		}
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		_ = h.Release(ctx) // its result is in the history
		cancel()
	}
}

// actUnder acts while the lease is trusted, for a while.
func actUnder(h *client.Held, log *opLog, inst events.Instance, d time.Duration) {
	for end := client.BootTime() + d; client.BootTime() < end && !h.Final(); {
		op := leaseOp{Kind: "act", Key: h.Key().String(), Instance: inst, Fence: h.Fence(), Call: client.BootTime()}
		if h.Valid() {
			op.Result = opDone
			log.end(log.begin(op), op)
		}
		<-time.After(25 * time.Millisecond)
	}
}

// history reads what a holder wrote. Its clock may be ahead of the test's.
func history(body string, ahead time.Duration) (ops []leaseOp, pid int, err error) {
	at := make(map[int]int)
	for line := range strings.Lines(body) {
		if !strings.HasSuffix(line, "\n") {
			break // cut off by a kill
		}
		var l holderLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return nil, 0, fmt.Errorf("line %q: %w", line, err)
		}
		if l.Op == nil {
			pid = l.PID
			continue
		}
		l.Op.Call -= ahead
		if l.Op.Return != 0 {
			l.Op.Return -= ahead
		}
		i, known := at[l.N]
		if !known {
			i = len(ops)
			at[l.N] = i
			ops = append(ops, leaseOp{})
		}
		ops[i] = *l.Op
	}
	return ops, pid, nil
}
