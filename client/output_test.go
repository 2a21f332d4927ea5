package client_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// reelTape is an exec's output as the bus keeps it, beside the record.
type reelTape struct {
	*tape
	session events.SessionID
	exec    events.ExecID

	outMu  sync.Mutex
	stored []*nats.Msg // of kx.out, in stream order
	number uint64
	offset map[string]int64
	pages  int
	asked  []events.Output
}

func newReelTape(t testing.TB, s *server.Server) *reelTape {
	t.Helper()
	r := &reelTape{
		tape: newTape(t, s), session: events.SessionID(events.NewID()), exec: events.ExecID(events.NewID()),
		offset: make(map[string]int64),
	}
	r.mu.Lock()
	r.other = r.output
	r.mu.Unlock()
	r.add(r.session.Scope(), events.TypeExecRequested, events.ExecRequested{
		Exec: r.exec, Selection: events.Selection{Executor: "exec"},
	}, true)
	return r
}

func (r *reelTape) output(c command) {
	q := ask[events.Output](c)
	r.outMu.Lock()
	defer r.outMu.Unlock()
	r.asked = append(r.asked, q)
	var end events.OutputPage
	if n := len(r.stored); n > 0 {
		last, err := strconv.ParseUint(r.stored[n-1].Header.Get(events.HeaderChunk), 10, 64)
		if err != nil {
			r.t.Error(err)
		}
		end.Stored = last
	}
	if !q.TipOnly {
		r.pages++
		sent := 0
		for i, m := range r.stored {
			seq := events.Sequence(i + 1)
			if m == nil || seq < q.From {
				continue
			}
			if sent == 128 {
				end.Next = seq
				break
			}
			sent++
			out := nats.NewMsg(c.msg.Reply)
			for k, v := range m.Header {
				out.Header[k] = v
			}
			out.Header.Set(events.HeaderSequence, seq.String())
			out.Data = m.Data
			if err := c.nc.PublishMsg(out); err != nil {
				r.t.Error(err)
			}
		}
	}
	c.end(end)
}

// Where a chunk goes.
const (
	live = 1 << iota
	stored
)

// chunk writes a chunk and returns it, so that it can be sent again.
func (r *reelTape) chunk(stream, text string, where int) *nats.Msg {
	r.t.Helper()
	r.outMu.Lock()
	r.number++
	m := nats.NewMsg(events.OutSubject(profile, "exec", r.session, r.exec))
	m.Header.Set(events.HeaderStream, stream)
	m.Header.Set(events.HeaderChunk, strconv.FormatUint(r.number, 10))
	m.Header.Set(events.HeaderOffset, strconv.FormatInt(r.offset[stream], 10))
	m.Data = []byte(text)
	r.offset[stream] += int64(len(text))
	r.outMu.Unlock()
	r.again(m, where)
	return m
}

func (r *reelTape) again(m *nats.Msg, where int) {
	r.t.Helper()
	if where&stored != 0 {
		r.outMu.Lock()
		r.stored = append(r.stored, m)
		r.outMu.Unlock()
	}
	if where&live != 0 {
		if err := r.nc.PublishMsg(m); err != nil {
			r.t.Error(err)
		}
	}
}

func (r *reelTape) exited() {
	r.outMu.Lock()
	d := events.ExecExited{Exec: r.exec}
	for _, s := range []string{"stdout", "stderr"} {
		d.Streams = append(d.Streams, events.StreamSummary{Name: s, Bytes: r.offset[s]})
	}
	r.outMu.Unlock()
	r.add(r.session.Scope(), events.TypeExecExited, d, false)
}

// reading collects what Output gives.
type reading struct {
	mu   sync.Mutex
	text strings.Builder
	last uint64
	lost int64
	done chan error
}

func (r *reelTape) read(c *client.Conn, executor events.PrincipalName) *reading {
	r.t.Helper()
	got := &reading{done: make(chan error, 1)}
	ctx := within(r.t, 20*time.Second)
	go func() {
		_, err := c.Output(ctx, executor, r.session, r.exec, func(chunk client.Chunk) {
			got.mu.Lock()
			defer got.mu.Unlock()
			if chunk.Number != 0 && chunk.Number <= got.last {
				r.t.Errorf("chunk %d came after %d", chunk.Number, got.last)
			}
			got.last = max(got.last, chunk.Number)
			got.lost += chunk.Missing
			got.text.Write(chunk.Data)
		})
		got.done <- err
	}()
	return got
}

func (g *reading) has(text string) func() bool {
	return func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.text.String() == text
	}
}

func (g *reading) want(t testing.TB, text string, lost int64) {
	t.Helper()
	if err := receive(t, "the end of the output", g.done); err != nil {
		t.Fatalf("output: %v", err)
	}
	if d := cmp.Diff(text, g.text.String()); d != "" {
		t.Errorf("output (-want +got):\n%s", d)
	}
	if g.lost != lost {
		t.Errorf("%d bytes are said to be missing, want %d", g.lost, lost)
	}
}

func TestOutputIsStoredAndLiveTogetherInOrder(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	r.chunk("stdout", "a", stored) // before anybody listens
	r.chunk("stderr", "b", stored)
	got := r.read(connect(t, s), "exec")
	await(t, "what was stored", got.has("ab"))
	r.chunk("stdout", "c", live|stored)
	await(t, "what is live", got.has("abc"))
	r.exited()
	got.want(t, "abc", 0)
}

func TestOutputOfAnExecWhoseExecutorIsNotKnownIsFound(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	r.chunk("stdout", "a", stored)
	r.exited()
	conn := connect(t, s)
	r.read(conn, "").want(t, "a", 0)
	_, err := conn.Output(within(t, 5*time.Second), "", r.session, events.ExecID(events.NewID()), func(client.Chunk) {})
	wantCode(t, err, events.CodeUnknownExec)
}

func TestALostChunkIsReadFromTheStreamBeforeTheNext(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	got := r.read(connect(t, s), "exec")
	r.chunk("stdout", "a", live|stored)
	await(t, "the first", got.has("a"))
	r.chunk("stdout", "b", stored) // not heard
	r.chunk("stdout", "c", live|stored)
	await(t, "all three", got.has("abc"))
	r.exited()
	got.want(t, "abc", 0)
}

func TestALastChunkThatIsLostIsFoundWithoutAnother(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	got := r.read(connect(t, s), "exec")
	r.chunk("stdout", "a", live|stored)
	await(t, "the first", got.has("a"))
	r.chunk("stdout", "b", stored) // not heard
	await(t, "the second", got.has("ab"))
	r.exited()
	got.want(t, "ab", 0)
}

func TestAChunkThatIsSentAgainLaterTakesItsPlace(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	got := r.read(connect(t, s), "exec")
	r.chunk("stdout", "a", live|stored)
	lost := r.chunk("stdout", "b", 0)
	r.chunk("stdout", "c", live|stored)
	await(t, "the first", got.has("a"))
	r.again(lost, stored)
	r.exited()
	got.want(t, "abc", 0)
}

func TestRepeatedChunksAreGivenOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	got := r.read(connect(t, s), "exec")
	a := r.chunk("stdout", "a", live|stored)
	b := r.chunk("stdout", "b", live|stored)
	r.again(a, live|stored)
	r.again(b, live|stored)
	r.chunk("stdout", "c", live|stored)
	r.exited()
	got.want(t, "abc", 0)
}

func TestWhatIsLostForGoodIsSaid(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	got := r.read(connect(t, s), "exec")
	r.chunk("stdout", "a", live|stored)
	r.chunk("stdout", "lost", 0)
	r.chunk("stdout", "b", live|stored)
	r.chunk("stderr", "end", 0)
	r.exited()
	got.want(t, "ab", int64(len("lost")+len("end")))
}

func TestAFloodBeyondWhatIsKeptIsSkippedAndSaid(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	const all, kept = 3000, 1024
	for range all - kept {
		r.chunk("stdout", "x", 0)
	}
	for range kept {
		r.chunk("stdout", "y", stored)
	}
	r.exited()
	r.read(connect(t, s), "exec").want(t, strings.Repeat("y", kept), all-kept)
}

func TestOutputOfAnotherExecutorOrExecIsNoPartOfIt(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	conn := connect(t, s)
	got := r.read(conn, "exec")
	r.chunk("stdout", "a", live|stored)
	await(t, "the first", got.has("a"))
	for _, subject := range []string{
		events.OutSubject(profile, "evil", r.session, r.exec),
		events.OutSubject(profile, "exec", r.session, events.ExecID(events.NewID())),
	} {
		m := nats.NewMsg(subject)
		m.Header.Set(events.HeaderStream, "stdout")
		m.Header.Set(events.HeaderChunk, "2")
		m.Header.Set(events.HeaderOffset, "1")
		m.Data = []byte("forged")
		if err := r.nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	r.chunk("stdout", "b", live|stored)
	r.exited()
	got.want(t, "ab", 0)
}

func TestAnExecThatWasRefusedOrLostEndsItsOutputWithAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typ  events.Type
		data func(events.ExecID) any
		want events.Code
	}{
		"refused": {events.TypeExecRefused, func(id events.ExecID) any {
			return events.ExecRefused{Exec: id, Code: events.CodeLaunchFailed, Message: "no such file"}
		}, events.CodeLaunchFailed},
		"lost": {events.TypeExecLost, func(id events.ExecID) any { return events.ExecLost{Exec: id, Reason: "gone"} }, events.CodeUnknownExec},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			r := newReelTape(t, s)
			r.chunk("stdout", "a", stored)
			r.add(r.session.Scope(), c.typ, c.data(r.exec), true)
			got := r.read(connect(t, s), "exec")
			wantCode(t, receive(t, "the end", got.done), c.want)
			if text := got.text.String(); text != "a" {
				t.Errorf("the output is %q, want what was stored", text)
			}
		})
	}
}

func TestOutputEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	conn := connect(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := conn.Output(ctx, "exec", r.session, r.exec, func(client.Chunk) { cancel(errEnough) })
		done <- err
	}()
	r.chunk("stdout", "a", stored)
	if err := receive(t, "the end", done); !errors.Is(err, errEnough) {
		t.Errorf("got %v", err)
	}
}

func TestAReaderThatIsSlowIsGivenAllFromTheStream(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newReelTape(t, s)
	conn := connect(t, s)
	go1, gone := make(chan struct{}), make(chan error, 1)
	var n int
	first := make(chan struct{})
	ctx := within(t, 20*time.Second)
	go func() {
		_, err := conn.Output(ctx, "exec", r.session, r.exec, func(c client.Chunk) {
			if n++; n == 1 {
				close(first)
				<-go1
			}
			if c.Missing != 0 {
				t.Errorf("chunk %d: %d bytes are missing", c.Number, c.Missing)
			}
		})
		gone <- err
	}()
	const many = 5000 // more than may wait
	r.chunk("stdout", "x", live|stored)
	receive(t, "the first chunk", first)
	for range many - 1 {
		r.chunk("stdout", "x", live|stored)
	}
	if err := r.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	r.exited()
	close(go1)
	if err := receive(t, "the end", gone); err != nil || n != many {
		t.Errorf("got %d chunks, %v; want %d", n, err, many)
	}
}
