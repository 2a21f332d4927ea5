package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
)

// heard is what a follower gave.
type heard struct {
	rec events.Record
	err error
}

// following follows on a goroutine that ends with the test.
func following(t testing.TB, c *client.Conn, cfg client.FollowConfig) <-chan heard {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan heard)
	var done sync.WaitGroup
	done.Go(func() {
		for rec, err := range c.Follow(ctx, cfg) {
			select {
			case out <- heard{rec, err}:
			case <-ctx.Done():
				return
			}
		}
		close(out)
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return out
}

// wantRun takes events of a scope and wants the ordinals from..to.
func wantRun(t testing.TB, got <-chan heard, scope events.Scope, from, to events.Ordinal) {
	t.Helper()
	for want := from; want <= to; want++ {
		h := receive(t, fmt.Sprintf("event %d of %s", want, scope), got)
		if h.err != nil || h.rec.Scope != scope || h.rec.Ordinal != want {
			t.Fatalf("got event %d of %s (%v), want %d of %s", h.rec.Ordinal, h.rec.Scope, h.err, want, scope)
		}
	}
}

func scopeID() events.Scope { return events.Scope(events.NewID()) }

func TestAFollowerReadsWhatIsThereAndGoesOnLive(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.pageSize = 7
	l.fill(a, 20, true)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}})
	wantRun(t, got, a, 1, 20)
	l.fill(a, 20, false)
	wantRun(t, got, a, 21, 40)
}

func TestAFollowerFromAPointInTheMiddleBeginsThere(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.fill(a, 10, true)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}, From: 8})
	wantRun(t, got, a, 8, 10)
}

func TestAFollowerFromTheTipLeavesOutWhatIsThere(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a, b := newTape(t, s), scopeID(), scopeID()
	l.fill(a, 10, true)
	conn := connect(t, s)
	got := following(t, conn, client.FollowConfig{FromTip: true})
	await(t, "the tips to be told", func() bool { return conn.NATS().Stats().InMsgs >= 1 })
	l.fill(a, 1, false)
	wantRun(t, got, a, 11, 11)
	l.fill(b, 2, false)
	wantRun(t, got, b, 1, 2)
}

func TestAFollowerOfTheProfileFindsScopesThatAppearLater(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := newTape(t, s)
	l.fill("first", 3, true)
	got := following(t, connect(t, s), client.FollowConfig{})
	wantRun(t, got, "first", 1, 3)
	l.fill("second", 2, true) // not heard
	l.fill("second", 1, false)
	wantRun(t, got, "second", 1, 3)
	l.fill("first", 1, false)
	wantRun(t, got, "first", 4, 4)
}

func TestALiveEventThatIsLostIsReadFromTheRecordBeforeTheNext(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.fill(a, 1, true)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}})
	wantRun(t, got, a, 1, 1)
	for range 20 {
		l.fill(a, 2, true)
		l.fill(a, 1, false)
	}
	wantRun(t, got, a, 2, 61)
}

func TestALastEventThatIsLostOverARestartIsFoundByTheTips(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.fill(a, 1, true)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}})
	wantRun(t, got, a, 1, 1)
	port := samePort(t, s)
	s.Shutdown()
	s.WaitForShutdown()
	l.fill(a, 3, true)
	l.serve(startServer(t, port))
	wantRun(t, got, a, 2, 4)
	l.fill(a, 1, false)
	wantRun(t, got, a, 5, 5)
}

func TestWhatIsRepeatedLiveIsGivenOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	r := l.add(a, events.TypeTurnStarted, struct{}{}, true)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}})
	wantRun(t, got, a, 1, 1)
	l.mu.Lock()
	l.publish(r)
	l.publish(r)
	l.mu.Unlock()
	l.fill(a, 1, false)
	wantRun(t, got, a, 2, 2)
}

func TestASlowFollowerIsGivenEverythingFromTheRecord(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.fill(a, 1, true)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}})
	wantRun(t, got, a, 1, 1)
	const many = 12_000 // more than may wait
	l.fill(a, many, false)
	l.mu.Lock()
	err := l.nc.Flush()
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	wantRun(t, got, a, 2, many+1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages < 2 {
		t.Errorf("read %d pages: nothing was dropped, so nothing was shown", l.pages)
	}
}

func TestAGapIsSaidAndPassed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.fill(a, 10, true)
	l.cut(a, 4)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}})
	h := receive(t, "the gap", got)
	var gap *follow.GapError
	if !errors.As(h.err, &gap) || gap.From != 1 || gap.To != 4 || gap.Scope != a {
		t.Fatalf("got %v", h.err)
	}
	wantRun(t, got, a, 5, 10)
}

func TestARecordThatCannotBeDecodedIsSaidAndPassed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.fill(a, 5, true)
	l.spoil(a, 3)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}})
	wantRun(t, got, a, 1, 2)
	h := receive(t, "the hole", got)
	var hole *client.HoleError
	if !errors.As(h.err, &hole) || hole.Sequence != 3 || h.rec.Ordinal != 3 {
		t.Fatalf("got %v", h.err)
	}
	wantRun(t, got, a, 4, 5)
}

func TestAFollowerKeepsTheTypesAskedFor(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	for _, typ := range []events.Type{events.TypeSessionRegistered, events.TypeTurnStarted, events.TypeTurnEnded} {
		l.add(a, typ, struct{}{}, true)
	}
	got := following(t, connect(t, s), client.FollowConfig{Scopes: []events.Scope{a}, Types: []string{"keryx.session.registered.v1", "turn.e*"}})
	wantRun(t, got, a, 1, 1)
	wantRun(t, got, a, 3, 3)
}

func TestMoreScopesThanAreSubscribedOneByOneAreFollowedAllTheSame(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := newTape(t, s)
	var scopes []events.Scope
	for range 100 {
		scopes = append(scopes, scopeID())
	}
	l.fill(scopes[0], 1, true)
	got := following(t, connect(t, s), client.FollowConfig{Scopes: scopes})
	wantRun(t, got, scopes[0], 1, 1)
	l.fill("not-asked-for", 1, false)
	l.fill(scopes[99], 1, false)
	wantRun(t, got, scopes[99], 1, 1)
}

func TestAFollowerEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	l.fill(a, 1, true)
	conn := connect(t, s)
	got := following(t, conn, client.FollowConfig{Scopes: []events.Scope{a}})
	wantRun(t, got, a, 1, 1)
	mustClose(t, conn)
	if h := receive(t, "the end", got); !errors.Is(h.err, nats.ErrConnectionClosed) {
		t.Errorf("got %v", h.err)
	}
	if h, more := <-got; more {
		t.Errorf("then got %v", h)
	}
}

func TestCase_K1_readers_that_start_while_events_come_see_each_once_and_in_order(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := newTape(t, s), scopeID()
	const all, readers = 3000, 20
	l.fill(a, 1, true)
	var reading sync.WaitGroup
	for n := range readers {
		conn := connect(t, s)
		reading.Go(func() {
			next := events.Ordinal(1)
			for rec, err := range conn.Follow(within(t, 30*time.Second), client.FollowConfig{Scopes: []events.Scope{a}}) {
				if err != nil || rec.Ordinal != next {
					t.Errorf("reader %d: got event %d (%v), want %d", n, rec.Ordinal, err, next)
					return
				}
				if next++; next > all {
					return
				}
			}
			t.Errorf("reader %d ended before event %d", n, next)
		})
		l.fill(a, (all-1)/readers, n%5 == 4) // some are never heard
	}
	l.fill(a, (all-1)%readers, false)
	reading.Wait()
}

// TestAPageCutByALostConnectionIsAskedForAgain loses the middle of a page with the
// connection, while its end comes over the next one, before anybody was told of that.
func TestAPageCutByALostConnectionIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := &tape{t: t, ordinals: make(map[events.Scope]events.Ordinal), pageSize: 1000}, scopeID()
	told := make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) })
	var conn *client.Conn
	var tries atomic.Int32
	l.nc = respond(t, s, func(c command) {
		if tries.Add(1) > 1 {
			tell()
			l.take(c)
			return
		}
		before := conn.NATS().Stats().Reconnects
		for _, id := range clients(t, s, "gw") {
			if err := s.DisconnectClientByID(id); err != nil {
				t.Errorf("disconnect: %v", err)
			}
		}
		await(t, "the reconnect", func() bool {
			return conn.NATS().Stats().Reconnects > before && conn.NATS().IsConnected() && s.NumSubscriptions() >= 3
		})
		c.end(events.LogPageEnd{Tip: events.Tip{Scope: a, Sequence: 3, Ordinal: 3}}) // without its messages
	})
	l.fill(a, 3, true)
	conn = connect(t, s, func(c *client.Config) { c.Logger = slog.New(holdUp{slog.DiscardHandler, told}) })
	t.Cleanup(tell)
	page, err := conn.Page(within(t, 10*time.Second), a, 0, 0)
	if err != nil || len(page.Records) != 3 || tries.Load() < 2 {
		t.Errorf("got %d records after %d tries, %v; want 3 after 2 or more", len(page.Records), tries.Load(), err)
	}
}

// holdUp holds up whoever logs: what is told of a connection comes late.
type holdUp struct {
	slog.Handler
	until <-chan struct{}
}

func (h holdUp) Enabled(context.Context, slog.Level) bool { return true }

func (h holdUp) Handle(context.Context, slog.Record) error { <-h.until; return nil }

// clients returns the ids of the connections with a name.
func clients(t testing.TB, s *server.Server, name string) []uint64 {
	t.Helper()
	z, err := s.Connz(&server.ConnzOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []uint64
	for _, c := range z.Conns {
		if c.Name == name {
			out = append(out, c.Cid)
		}
	}
	return out
}
