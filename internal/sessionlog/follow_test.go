package sessionlog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/client/follow"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/sessionlog"
)

// The load of case K1. Ten seconds of it add nothing to three but time.
const (
	k1Rate    = 1000 // events a second
	k1For     = 3 * time.Second
	k1Readers = 20
	k1Tips    = 200 * time.Millisecond // how often a reader asks for the tip
)

// TestCase_K1_ReplayWithFollowHasNoGapAndNoRepeat: while 1,000 events a second are
// appended to one session, 20 readers begin at random times to replay it from the start
// and to follow it. Half of them lose a third of the live messages.
func TestCase_K1_ReplayWithFollowHasNoGapAndNoRepeat(t *testing.T) {
	t.Parallel()
	l, b := open(t)
	begun := time.Now()
	var wg sync.WaitGroup
	total := make(chan events.Ordinal, 1)
	wg.Go(func() { total <- k1Append(t, l, "s-70", begun) })
	readers := make([]*k1Reader, k1Readers)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	for i := range readers {
		readers[i] = newK1Reader(t, b, "s-70", i%2 == 1)
		wait := rand.N(k1For)
		wg.Go(func() {
			if pause(ctx, wait) {
				readers[i].run(ctx)
			}
		})
	}
	want := <-total
	for _, r := range readers {
		r.until <- want
	}
	wg.Wait()
	if want < k1Rate {
		t.Fatalf("only %d events were appended", want)
	}
	for i, r := range readers {
		if r.err != nil || r.got != want {
			t.Errorf("reader %d (loses messages: %v) saw %d of %d events: %v", i, r.lossy, r.got, want, r.err)
		}
	}
	t.Logf("%d events in %v; %d live messages lost on purpose", want, time.Since(begun).Round(time.Millisecond), lostBy(readers))
}

func lostBy(readers []*k1Reader) int {
	n := 0
	for _, r := range readers {
		n += r.lost
	}
	return n
}

// k1Append appends at the rate, and returns the last ordinal.
func k1Append(t *testing.T, l *sessionlog.Log, scope events.Scope, begun time.Time) events.Ordinal {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var last events.Ordinal
	var seq events.Sequence
	for !enough(time.Since(begun), last) {
		<-tick.C
		due := events.Ordinal(time.Since(begun).Seconds() * k1Rate)
		for ; last < due && !enough(time.Since(begun), last); last++ {
			var err error
			if seq, err = l.Append(t.Context(), message(t, scope, last+1, at(seq))); err != nil {
				t.Errorf("append event %d: %v", last+1, err)
				return last
			}
		}
	}
	return last
}

// enough ends the appending: after its time, but a slow machine goes on until there is
// something to follow.
func enough(since time.Duration, last events.Ordinal) bool {
	return (since > k1For && last >= k1Rate) || since > 20*time.Second
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// k1Reader follows one scope by a cursor, reading straight from the stream.
type k1Reader struct {
	nc    *nats.Conn
	log   *sessionlog.Log
	scope events.Scope
	lossy bool
	until chan events.Ordinal // where to stop, once it is known

	cursor *follow.Cursor
	got    events.Ordinal // the last one seen
	lost   int
	err    error
}

func newK1Reader(t *testing.T, b *broker.Broker, scope events.Scope, lossy bool) *k1Reader {
	t.Helper()
	nc := bustest.System(t, b)
	return &k1Reader{
		nc: nc, log: openOn(t, nc), scope: scope, lossy: lossy,
		until: make(chan events.Ordinal, 1), cursor: follow.New(scope, 0),
	}
}

func (r *k1Reader) run(ctx context.Context) {
	live := make(chan *nats.Msg, 64) // small: a slow reader loses messages
	sub, err := r.nc.ChanSubscribe(events.LiveSubject("main", r.scope), live)
	if err != nil {
		r.err = err
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	tips := time.NewTicker(k1Tips)
	defer tips.Stop()
	until := events.Ordinal(0)
	for r.err == nil && (until == 0 || r.got < until) {
		select {
		case m := <-live:
			r.take(ctx, m)
		case <-tips.C:
			r.tip(ctx)
		case until = <-r.until:
		case <-ctx.Done():
			r.err = ctx.Err()
		}
	}
}

func (r *k1Reader) take(ctx context.Context, m *nats.Msg) {
	if r.lossy && rand.IntN(3) == 0 {
		r.lost++
		return
	}
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		r.err = err
		return
	}
	rec, err := events.DecodeRecord(m.Subject, events.Sequence(seq), m.Header, m.Data)
	if err != nil {
		r.err = err
		return
	}
	r.see(r.cursor.Live(rec))
	r.fetch(ctx)
}

func (r *k1Reader) tip(ctx context.Context) {
	m, err := r.log.Last(ctx, subjectOf(r.scope))
	if err != nil {
		r.err = err
		return
	}
	rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
	if err != nil {
		r.err = err
		return
	}
	r.cursor.Tip(events.Tip{Scope: r.scope, Sequence: rec.Sequence, Ordinal: rec.Ordinal})
	r.fetch(ctx)
}

func (r *k1Reader) fetch(ctx context.Context) {
	for r.err == nil && r.cursor.Behind() {
		page, _, err := r.log.Page(ctx, subjectOf(r.scope), r.cursor.Next(), 200, 0)
		if err != nil {
			r.err = err
			return
		}
		records := make([]events.Record, 0, len(page))
		for _, m := range page {
			rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
			if err != nil {
				r.err = err
				return
			}
			records = append(records, rec)
		}
		out, gap := r.cursor.Page(records, events.Tip{})
		if gap != nil {
			r.err = gap
			return
		}
		r.see(out)
	}
}

// see checks the case's outcome.
func (r *k1Reader) see(out []events.Record) {
	for _, rec := range out {
		if rec.Ordinal != r.got+1 && r.err == nil {
			r.err = fmt.Errorf("ordinal %d came after %d", rec.Ordinal, r.got)
		}
		r.got = rec.Ordinal
	}
}
