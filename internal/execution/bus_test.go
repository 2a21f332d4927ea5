package execution_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/events"
)

// memoryBus is a bus without a log: commands are answered from memory, output and orders
// travel through a real server. It keeps output as the stream does: the newest 1,024
// chunks, in the order of arrival.
type memoryBus struct {
	t        *testing.T
	nc       *nats.Conn
	instance events.Instance

	mu           sync.Mutex
	changed      chan struct{} // closed at each change
	facts        []any         // reports, in order
	fences       events.Sequence
	gen          uint64
	target       *events.TargetRegistered
	chunks       []stored
	away         bool                          // commands get no answer
	lose         func(number uint64) bool      // chunks that the stream does not store
	light        bool                          // keep no bytes of the chunks
	taken        bool                          // the target's lease is another's now
	silent       bool                          // ... and nobody has it: once lost it can be taken anew
	acquired     int                           // lease.acquire commands
	grace        int64                         // the last one's
	refuse       map[events.Type]*events.Error // answers to reports
	asked        int                           // exec.output commands
	sessionEpoch events.Epoch                  // of every session; 0 is 1

	position   events.Sequence // of the stream
	epoch      uint64          // of access
	controller events.PrincipalName
}

type stored struct {
	number, offset uint64
	stream, size   string
	data           []byte
	at             time.Time
}

const (
	profile  events.Profile       = "p1"
	executor events.PrincipalName = "exec-1"
)

// startServer starts a server that passes messages on, on a port of its own or a given.
func startServer(t *testing.T, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("server is not ready")
	}
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func newBus(t *testing.T) *memoryBus {
	t.Helper()
	s := startServer(t, -1)
	t.Cleanup(func() { stopServer(s) })
	return connectBus(t, s.ClientURL())
}

func connectBus(t *testing.T, url string) *memoryBus {
	t.Helper()
	b := &memoryBus{t: t, instance: events.Instance(events.NewID()), changed: make(chan struct{}), refuse: map[events.Type]*events.Error{}}
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b.nc = nc
	// On the executor's own connection: like a real stream, it is back before the
	// executor can publish again.
	sub, err := nc.Subscribe(events.PatternOut, b.store)
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, 256<<20); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *memoryBus) NATS() *nats.Conn          { return b.nc }
func (b *memoryBus) Instance() events.Instance { return b.instance }
func (b *memoryBus) Principal() events.Principal {
	return events.Principal{Profile: profile, Name: executor, Role: events.RoleExecutor}
}

func (b *memoryBus) store(m *nats.Msg) {
	n, _ := strconv.ParseUint(m.Header.Get(events.HeaderChunk), 10, 64)
	off, _ := strconv.ParseUint(m.Header.Get(events.HeaderOffset), 10, 64)
	b.update(func() {
		if b.lose != nil && b.lose(n) {
			return
		}
		c := stored{number: n, offset: off, stream: m.Header.Get(events.HeaderStream), size: m.Header.Get(events.HeaderSize), data: m.Data, at: time.Now()}
		if b.light {
			c.data = nil
		}
		b.chunks = append(b.chunks, c)
		b.position++
		if len(b.chunks) > 1024 {
			b.chunks = slices.Delete(b.chunks, 0, 1)
		}
	})
}

// update changes the bus and wakes who waits for a change.
func (b *memoryBus) update(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn()
	close(b.changed)
	b.changed = make(chan struct{})
}

// until blocks until cond holds, which is called with the bus locked.
func (b *memoryBus) until(what string, cond func() bool) {
	b.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		b.mu.Lock()
		ok, changed := cond(), b.changed
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			b.mu.Lock()
			defer b.mu.Unlock()
			b.t.Fatalf("waited in vain for %s; facts: %+v", what, b.facts)
		}
	}
}

// Do answers a command, waiting while the bus is away.
func (b *memoryBus) Do(ctx context.Context, t events.Type, data, answer any) error {
	for {
		b.mu.Lock()
		away, changed := b.away, b.changed
		b.mu.Unlock()
		if !away {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return events.Errorf(events.CodeTimeout, "no answer")
		}
	}
	var out any
	var err error
	b.update(func() { out, err = b.answer(t, data) })
	if err != nil || answer == nil {
		return err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, answer)
}

func (b *memoryBus) answer(t events.Type, data any) (any, error) {
	if d, ok := data.(events.AcquireLease); ok {
		b.acquired, b.grace = b.acquired+1, d.GraceMS
	}
	if e := b.refuse[t]; e != nil {
		return nil, e
	}
	switch d := data.(type) {
	case events.AcquireLease:
		if b.taken && !b.silent {
			return nil, events.Errorf(events.CodeLeaseHeld, "held by another")
		}
		b.taken = false
		b.fences++
		return events.LeaseAnswer{Key: d.Key, Fence: events.Fence{Sequence: b.fences}, TTLMS: 2000}, nil
	case events.RenewLease:
		r := events.LeaseRenewal{Key: d.Leases[0].Key, TTLMS: 2000}
		if b.taken || d.Leases[0].Fence.Sequence != b.fences {
			r.Error = events.Errorf(events.CodeLeaseLost, "taken")
		}
		return events.LeaseRenewals{Results: []events.LeaseRenewal{r}}, nil
	case events.RegisterTarget:
		b.gen++
		b.target = &events.TargetRegistered{Spec: d.Spec, Executor: executor, Instance: d.Instance, Generation: b.gen, LeaseFence: d.LeaseFence, TargetCondition: d.TargetCondition}
		return b.selection(), nil
	case events.SessionShow:
		return events.SessionView{SessionSummary: events.SessionSummary{Epoch: max(b.sessionEpoch, 1), Status: events.StatusAttached}}, nil
	case events.WithdrawTarget:
		b.target = nil
	case events.SelectTarget:
		return b.selection(), nil
	case events.Output:
		b.asked++
		return b.output(d), nil
	}
	b.facts = append(b.facts, data)
	return events.Done{}, nil
}

func (b *memoryBus) output(q events.Output) events.OutputPage {
	page := events.OutputPage{Position: b.position}
	if q.Pulse {
		return page
	}
	have := map[uint64]bool{}
	for _, c := range b.chunks {
		have[c.number] = true
		if q.Audit {
			page.Stored = max(page.Stored, c.number)
		} else {
			page.Stored = c.number
		}
	}
	for n := uint64(1); q.Audit && n < page.Stored; n++ {
		if !have[n] {
			page.Missing = append(page.Missing, events.ChunkRange{From: n, To: n})
		}
	}
	return page
}

func (b *memoryBus) selection() events.Selection {
	return events.Selection{
		Target: b.target.Spec.Name, Generation: b.target.Generation, LeaseFence: b.target.LeaseFence,
		Executor: executor, Instance: b.target.Instance, AccessEpoch: b.epoch, Controller: b.controller,
	}
}

// order makes a start order for the target as it is now.
func (b *memoryBus) order(spec events.ExecSpec) events.StartOrder {
	b.until("a registration", func() bool { return b.target != nil })
	b.mu.Lock()
	defer b.mu.Unlock()
	return events.StartOrder{
		Session: events.SessionID(events.NewID()), Epoch: 1,
		Request: events.ExecRequested{Exec: events.ExecID(events.NewID()), Turn: events.TurnID(events.NewID()), Selection: b.selection(), Spec: spec},
	}
}

func (b *memoryBus) tell(v events.ExecVerb, order any) {
	b.t.Helper()
	body, err := json.Marshal(order)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.nc.Publish(events.ExecSubject(profile, executor, b.instance, v), body); err != nil {
		b.t.Fatal(err)
	}
}

// start tells the executor to run a command and returns its order.
func (b *memoryBus) start(spec events.ExecSpec) events.StartOrder {
	b.t.Helper()
	o := b.order(spec)
	b.tell(events.ExecStart, o)
	return o
}

// factOf returns the first report of type T.
func factOf[T any](b *memoryBus, ok func(T) bool) (T, bool) {
	for _, f := range b.facts {
		if v, is := f.(T); is && ok(v) {
			return v, true
		}
	}
	var none T
	return none, false
}

func await[T any](b *memoryBus, what string, ok func(T) bool) T {
	b.t.Helper()
	var got T
	b.until(what, func() bool {
		v, found := factOf(b, ok)
		got = v
		return found
	})
	return got
}

func (b *memoryBus) exited(o events.StartOrder) events.ExecExited {
	b.t.Helper()
	return await(b, "the exit", func(r events.ReportExited) bool { return r.Fact.Exec == o.Request.Exec }).Fact
}

func (b *memoryBus) started(o events.StartOrder) events.ExecStarted {
	b.t.Helper()
	return await(b, "the start", func(r events.ReportStarted) bool { return r.Fact.Exec == o.Request.Exec }).Fact
}

func (b *memoryBus) refused(o events.StartOrder) events.ExecRefused {
	b.t.Helper()
	return await(b, "the refusal", func(r events.ReportRefused) bool { return r.Fact.Exec == o.Request.Exec }).Fact
}

// count returns how many reports are about an exec.
func (b *memoryBus) count(id events.ExecID) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.facts {
		switch f := f.(type) {
		case events.ReportStarted:
			n += boolInt(f.Fact.Exec == id)
		case events.ReportExited:
			n += boolInt(f.Fact.Exec == id)
		case events.ReportRefused:
			n += boolInt(f.Fact.Exec == id)
		}
	}
	return n
}

func boolInt(v bool) int {
	if v {
		return 1
	}
	return 0
}

// kept returns what the stream holds of one stream, by offset; nil where it has holes.
func (b *memoryBus) kept(stream string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	var mine []stored
	for _, c := range b.chunks {
		if c.stream == stream {
			mine = append(mine, c)
		}
	}
	slices.SortStableFunc(mine, func(x, y stored) int { return int(x.offset) - int(y.offset) })
	var out []byte
	for _, c := range mine {
		if c.offset == uint64(len(out)) {
			out = append(out, c.data...)
		}
	}
	return out
}
