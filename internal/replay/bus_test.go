package replay_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/node"
	"keryx/internal/replay"
)

// prepared returns a directory with a record that fill wrote.
func prepared(t *testing.T, fill func(b *broker.Broker)) string {
	t.Helper()
	dir := t.TempDir()
	b := bustest.Broker(t, bustest.Dir(dir))
	fill(b)
	if err := b.Stop(t.Context()); err != nil {
		t.Fatalf("stop: %v", err)
	}
	return dir
}

func startNode(t *testing.T, dir string) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{Dir: dir})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return n
}

// registered is the first event of any session.
func registered(key string) events.SessionRegistered {
	return events.SessionRegistered{Names: events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}, Owner: "gw"}
}

// link passes a connection on until it is cut; the next one gets through.
type link struct {
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
	wg       sync.WaitGroup
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l := &link{}
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatalf("listen: %v", err)
	}
	l.wg.Go(func() {
		for {
			in, err := l.listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, in, out)
			l.mu.Unlock()
			l.wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			l.wg.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.cut()
		l.wg.Wait()
	})
	return l
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

// smallPages reads three events at a time, and notes where from.
type smallPages struct {
	*client.Conn
	from []events.Sequence
}

func (s *smallPages) Page(ctx context.Context, scope events.Scope, from events.Sequence, _ int) (client.Page, error) {
	s.from = append(s.from, from)
	return s.Conn.Page(ctx, scope, from, 3)
}

// TestCase_K2_AReplayByTimeHasExactBoundsAndGoesOnBySequence: events at T+0 to T+9 s, two
// at exactly T+5; the link is cut after the first event; one bound is written in another
// zone.
func TestCase_K2_AReplayByTimeHasExactBoundsAndGoesOnBySequence(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	session := events.SessionID(events.NewID())
	seconds := []int{0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9}
	dir := prepared(t, func(b *broker.Broker) {
		bustest.Record(t, bustest.System(t, b), "default", session.Scope(), len(seconds), func(i int) bustest.Fact {
			f := bustest.Fact{Type: events.TypeSessionIdle, At: begin.Add(time.Duration(seconds[i-1]) * time.Second), Data: events.SessionIdle{Pending: i}}
			if i == 1 {
				f.Type, f.Data = events.TypeSessionRegistered, registered("k2")
			}
			return f
		})
	})
	n := startNode(t, dir)
	creds := bustest.Principal(t, n.Broker(), "default", "reader", events.RoleObserver)
	l := newLink(t, strings.TrimPrefix(n.Broker().URL(), "nats://"))
	c, err := client.Connect(t.Context(), client.Config{URL: "nats://" + l.listener.Addr().String(), Credentials: creds})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })

	east := time.FixedZone("+02:00", 2*60*60)
	q := replay.Query{Since: begin.Add(5 * time.Second).In(east), Until: begin.Add(7 * time.Second)}
	src := &smallPages{Conn: c}
	out := &cutting{cut: l.cut}
	if err := replay.Print(t.Context(), src, replay.NewJSONWriter(out), session.Scope(), q); err != nil {
		t.Fatalf("print: %v", err)
	}
	if got, want := ordinals(t, out.String()), "6 7 8"; got != want {
		t.Errorf("shown are ordinals %s, want %s", got, want)
	}
	for i, from := range src.from[1:] {
		if from <= src.from[i] {
			t.Errorf("pages begin at %v: not on by sequence", src.from)
		}
	}
	if c.NATS().Stats().Reconnects == 0 {
		t.Error("the link was not cut: the test shows nothing")
	}
	// The same range, followed.
	var followed bytes.Buffer
	q.Pace = nil
	err = replay.Tail(t.Context(), c, replay.NewJSONWriter(&followed), replay.FollowConfig{Query: q, Scopes: []events.Scope{session.Scope()}})
	if err != nil || ordinals(t, followed.String()) != "6 7 8" {
		t.Errorf("followed are ordinals %s, %v", ordinals(t, followed.String()), err)
	}
}

// cutting cuts a link once something was written.
type cutting struct {
	bytes.Buffer
	cut func()
}

func (c *cutting) Write(b []byte) (int, error) {
	if c.cut != nil {
		c.cut()
		c.cut = nil
	}
	return c.Buffer.Write(b)
}

func ordinals(t *testing.T, lines string) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(lines) {
		var e struct{ Ordinal string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %s: %v", line, err)
		}
		out = append(out, e.Ordinal)
	}
	return strings.Join(out, " ")
}

// TestCase_K6_ALongRecordIsReplayedInFlatMemoryPastWhatIsBroken replays a session by
// pages while it grows, with others beside it. KERYX_TEST_EVENTS asks for a longer one
// than the default: 300000 is that of the case.
func TestCase_K6_ALongRecordIsReplayedInFlatMemoryPastWhatIsBroken(t *testing.T) {
	n := 20_000
	if asked, err := strconv.Atoi(os.Getenv("KERYX_TEST_EVENTS")); err == nil {
		n = asked
	}
	const mib = 1 << 20
	session, others := events.SessionID(events.NewID()), []events.SessionID{events.SessionID(events.NewID()), events.SessionID(events.NewID())}
	begin := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	dir := prepared(t, func(b *broker.Broker) {
		nc := bustest.System(t, b)
		fact := func(of string) func(int) bustest.Fact {
			return func(i int) bustest.Fact {
				f := bustest.Fact{Type: events.TypeSessionIdle, At: begin, Data: events.SessionIdle{Pending: i}}
				switch {
				case i == 1:
					f.Type, f.Data = events.TypeSessionRegistered, registered(of)
				case i == 50:
					f.Broken = of == "s-1"
				case i == 60 && of == "s-1":
					f.Type, f.Data = events.TypeTurnReportedLate, events.TurnReportedLate{Reply: strings.Repeat("x", mib-1024)}
				}
				return f
			}
		}
		bustest.Record(t, nc, "default", others[0].Scope(), 100, fact("s-10"))
		bustest.Record(t, nc, "default", session.Scope(), n, fact("s-1"))
		bustest.Record(t, nc, "default", others[1].Scope(), 100, fact("s-100"))
	})
	bus := startNode(t, dir)
	gw, err := bus.Connect(t.Context(), events.Principal{Profile: "default", Name: "gw", Role: events.RoleOperator})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = gw.Close() })
	if _, err := gw.Page(t.Context(), session.Scope(), 0, 1); err != nil { // the log is loaded
		t.Fatalf("page: %v", err)
	}
	stop := grow(t, gw, session)
	defer stop()
	counts := &counter{}
	debug.FreeOSMemory() // what the start needed is not the replay's
	before := resident(t)
	pages := &pagesOf{t: t, Conn: gw, n: 500}
	if err := replay.Print(t.Context(), pages, replay.NewJSONWriter(counts), session.Scope(), replay.Query{To: events.Ordinal(n)}); err != nil {
		t.Fatalf("print: %v", err)
	}
	growth := pages.peak - before
	t.Logf("%d events, %d holes, memory grew by %d MiB at most", counts.events, counts.holes, growth/mib)
	if counts.events != n-1 || counts.holes != 1 || counts.last != n {
		t.Errorf("shown are %d events and %d holes up to ordinal %d of %d", counts.events, counts.holes, counts.last, n)
	}
	for _, s := range others {
		if counts.scopes[string(s)] > 0 {
			t.Errorf("%d events of session %s are mixed in", counts.scopes[string(s)], s)
		}
	}
	if growth > 100*mib {
		t.Errorf("memory grew by %d MiB, at most 100 are allowed", growth/mib)
	}
}

// pagesOf reads pages of n events, and looks at the memory at each.
type pagesOf struct {
	*client.Conn
	t    *testing.T
	n    int
	peak int64
}

func (p *pagesOf) Page(ctx context.Context, scope events.Scope, from events.Sequence, _ int) (client.Page, error) {
	p.peak = max(p.peak, resident(p.t))
	return p.Conn.Page(ctx, scope, from, p.n)
}

// grow appends to a session, 100 times a second, until the returned function is called.
func grow(t *testing.T, gw *client.Conn, session events.SessionID) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			_, err := gw.Submit(ctx, events.Submit{To: string(session), Body: events.Body{Text: strconv.Itoa(i)}})
			if err != nil && ctx.Err() == nil && !errors.Is(err, events.ErrOf(events.CodeQueueFull)) {
				t.Errorf("submit: %v", err)
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// counter counts lines of JSON without keeping them.
type counter struct {
	rest          []byte
	events, holes int
	last          int
	scopes        map[string]int
}

func (c *counter) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	for {
		i := bytes.IndexByte(c.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		if err := c.line(c.rest[:i]); err != nil {
			return 0, err
		}
		c.rest = append(c.rest[:0], c.rest[i+1:]...)
	}
}

func (c *counter) line(b []byte) error {
	var line struct {
		Subject, Ordinal string
		Hole             *struct{ Ordinal events.Ordinal }
	}
	if err := json.Unmarshal(b, &line); err != nil {
		return fmt.Errorf("line %d: %w", c.events+c.holes+1, err)
	}
	if line.Hole != nil {
		c.holes++
		if line.Hole.Ordinal != 50 {
			return fmt.Errorf("the hole is at ordinal %s", line.Hole.Ordinal)
		}
		return nil
	}
	if c.scopes == nil {
		c.scopes = make(map[string]int)
	}
	c.scopes[line.Subject]++
	c.events++
	var err error
	c.last, err = strconv.Atoi(line.Ordinal)
	return err
}

// resident returns the memory that this process has now, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatalf("read memory: %v", err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("no VmRSS in /proc/self/status")
	return 0
}
