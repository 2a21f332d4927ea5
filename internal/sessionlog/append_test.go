package sessionlog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/sessionlog"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		before int // events on the subject
		expect *events.Sequence
		want   error
	}{
		{name: "an append that expects nothing is stored", before: 2},
		{name: "the first append of a subject expects 0", expect: at(0)},
		{name: "an append at the last sequence is stored", before: 2, expect: at(2)},
		{
			name: "an append behind the last sequence is refused", before: 2, expect: at(1),
			want: &sessionlog.SequenceError{Subject: subjectOf("s"), Expected: 1, Last: 2},
		},
		{
			name: "an append that expects an empty subject is refused by one that is not", before: 1, expect: at(0),
			want: &sessionlog.SequenceError{Subject: subjectOf("s"), Expected: 0, Last: 1},
		},
		{
			name: "an append that expects a message that never was is refused", expect: at(7),
			want: &sessionlog.SequenceError{Subject: subjectOf("s"), Expected: 7, Last: 0},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, _ := open(t)
			fill(t, l, "s", tc.before)
			seq, err := l.Append(t.Context(), message(t, "s", events.Ordinal(tc.before+1), tc.expect))
			last, lastErr := l.LastSequence(t.Context())
			if lastErr != nil {
				t.Fatal(lastErr)
			}
			if tc.want == nil {
				if err != nil || seq != events.Sequence(tc.before+1) || last != seq {
					t.Errorf("Append = %d, %v with the log at %d; want %d", seq, err, last, tc.before+1)
				}
				return
			}
			var got *sessionlog.SequenceError
			if !errors.As(err, &got) {
				t.Fatalf("Append = %v, want a *SequenceError", err)
			}
			if diff := cmp.Diff(tc.want, error(got)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if last != events.Sequence(tc.before) {
				t.Errorf("a refused append left the log at %d, want %d", last, tc.before)
			}
		})
	}
}

func TestOneOfManyAppendsAtOneSequenceWins(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	var won, lost int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := l.Append(t.Context(), message(t, "s", 1, at(0)))
			mu.Lock()
			defer mu.Unlock()
			var stale *sessionlog.SequenceError
			switch {
			case err == nil:
				won++
			case errors.As(err, &stale):
				lost++
			default:
				t.Errorf("Append: %v", err)
			}
		})
	}
	wg.Wait()
	if won != 1 || lost != 15 {
		t.Errorf("%d appends won and %d lost, want 1 and 15", won, lost)
	}
}

func TestAppendBatch(t *testing.T) {
	t.Parallel()
	name := func(value string, expect *events.Sequence) sessionlog.Message {
		return sessionlog.Message{Subject: events.IDSubject("main", events.Name{Kind: events.KindStored, Value: value}), Data: []byte(`{}`), Expect: expect}
	}
	tests := []struct {
		name  string
		batch []sessionlog.Message
		want  []events.Sequence
		stale *sessionlog.SequenceError
	}{
		{
			name: "every member's sequence is returned in order", want: []events.Sequence{3, 4, 5, 6},
			batch: []sessionlog.Message{name("a", at(0)), name("b", at(0)), message(t, "s", 3, at(2)), message(t, "s", 4, nil)},
		},
		{
			name: "a batch of one is stored", want: []events.Sequence{3},
			batch: []sessionlog.Message{message(t, "s", 3, at(2))},
		},
		{
			name: "a name that was taken meanwhile refuses the whole batch", stale: &sessionlog.SequenceError{Last: 0},
			batch: []sessionlog.Message{name("a", at(9)), message(t, "s", 3, at(2))},
		},
		{
			name: "a session that went on meanwhile refuses the whole batch", stale: &sessionlog.SequenceError{Last: 2},
			batch: []sessionlog.Message{name("a", at(0)), message(t, "s", 3, at(1))},
		},
		{
			name: "a second expectation on one subject refuses the whole batch", stale: &sessionlog.SequenceError{},
			batch: []sessionlog.Message{message(t, "s", 3, at(2)), message(t, "s", 4, at(3))},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, _ := open(t)
			fill(t, l, "s", 2)
			got, err := l.AppendBatch(t.Context(), tc.batch)
			var stale *sessionlog.SequenceError
			if errors.As(err, &stale) != (tc.stale != nil) {
				t.Fatalf("AppendBatch: %v, want %v", err, tc.stale)
			}
			if diff := cmp.Diff(tc.stale, stale); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("sequences %v, want %v", got, tc.want)
			}
			last, err := l.LastSequence(t.Context())
			if want := events.Sequence(2 + len(tc.want)); err != nil || last != want {
				t.Errorf("the log is at %d (%v), want %d", last, err, want)
			}
		})
	}
}

func TestAppendBatchTakesOneToAThousand(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	for n, ok := range map[int]bool{0: false, 1000: true, 1001: false} {
		ms := make([]sessionlog.Message, n)
		for i := range ms {
			ms[i] = sessionlog.Message{Subject: subjectOf("s"), Data: []byte(`{}`)}
		}
		if got, err := l.AppendBatch(t.Context(), ms); (err == nil) != ok || (ok && len(got) != n) {
			t.Errorf("a batch of %d: %d sequences, %v", n, len(got), err)
		}
	}
}

func TestAFullStoreRefusesAndStoresNothing(t *testing.T) {
	t.Parallel()
	l, _ := open(t, func(c *broker.Config) { c.MaxStore = broker.MinMaxStore })
	big := sessionlog.Message{Subject: subjectOf("s"), Data: []byte(strings.Repeat("x", 1<<20))}
	var err error
	var stored events.Sequence
	for range 64 {
		var seq events.Sequence
		if seq, err = l.Append(t.Context(), big); err != nil {
			break
		}
		stored = seq
	}
	if !errors.Is(err, events.ErrOf(events.CodeStoreFull)) {
		t.Fatalf("the append after %d MiB: %v, want store_full", stored, err)
	}
	if _, err := l.AppendBatch(t.Context(), []sessionlog.Message{big, big}); !errors.Is(err, events.ErrOf(events.CodeStoreFull)) {
		t.Errorf("a batch: %v, want store_full", err)
	}
	if last, err := l.LastSequence(t.Context()); err != nil || last != stored {
		t.Errorf("the log is at %d (%v), want %d", last, err, stored)
	}
}

func TestWithoutAStreamAppendAndPageAreUnavailable(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.System(t, b)
	l := openOn(t, nc)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), events.StreamLog); err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), message(t, "s", 1, nil))
	if !errors.Is(err, events.ErrOf(events.CodeUnavailable)) {
		t.Errorf("Append: %v, want unavailable", err)
	}
	_, _, err = l.Page(t.Context(), subjectOf("s"), 1, 1, 0)
	if !errors.Is(err, events.ErrOf(events.CodeUnavailable)) {
		t.Errorf("Page: %v, want unavailable", err)
	}
}

// deaf is an in-process connection that can stop hearing the server.
type deaf struct {
	nats.InProcessConnProvider
	mu      sync.Mutex
	stopped chan struct{} // while not nil, what was read waits until it is closed
}

func (d *deaf) InProcessConn() (net.Conn, error) {
	c, err := d.InProcessConnProvider.InProcessConn()
	return &deafConn{Conn: c, of: d}, err
}

func (d *deaf) stop() (hear func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{})
	d.stopped = c
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stopped = nil
		close(c)
	}
}

type deafConn struct {
	net.Conn
	of *deaf
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.of.mu.Lock()
	stopped := c.of.stopped
	c.of.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	return n, err
}

func TestALostAnswerIsAnUnknownResult(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	ear := &deaf{InProcessConnProvider: b.InProcess()}
	nc, err := b.System("deaf", nats.InProcessServer(ear))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	l, other := openOn(t, nc), openOn(t, bustest.System(t, b))
	hear := ear.stop()
	defer hear()

	appends := map[string]func(context.Context) error{
		"append": func(ctx context.Context) error { _, err := l.Append(ctx, message(t, "s", 1, at(0))); return err },
		"batch": func(ctx context.Context) error {
			_, err := l.AppendBatch(ctx, []sessionlog.Message{message(t, "b", 1, at(0)), message(t, "b", 2, nil)})
			return err
		},
	}
	for name, do := range appends {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := do(ctx); !errors.Is(err, sessionlog.ErrUnknownResult) {
			t.Errorf("%s: %v, want ErrUnknownResult", name, err)
		}
		cancel()
	}
	for scope, want := range map[events.Scope]int{"s": 1, "b": 2} {
		if page, _, err := other.Page(t.Context(), subjectOf(scope), 1, 10, 0); err != nil || len(page) != want {
			t.Errorf("scope %s has %d messages (%v), want %d: the append was done", scope, len(page), err, want)
		}
	}
}

func ExampleSequenceError() {
	err := fmt.Errorf("append to kx.log.main.s: %w", &sessionlog.SequenceError{Subject: "kx.log.main.s", Expected: 4, Last: 6})
	fmt.Println(err)
	// Output: append to kx.log.main.s: the subject is at sequence 6, not at 4
}
