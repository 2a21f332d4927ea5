package authority_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/client"
	"keryx/events"
	"keryx/internal/authority"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

// told is all that is told of a set of sessions.
type told struct {
	List     []events.SessionSummary
	Shown    map[string]events.SessionView
	Receipts map[events.ReceiptID]events.Receipt
}

func ask(t *testing.T, gw *client.Conn, receipts []events.ReceiptID) told {
	t.Helper()
	out := told{Shown: map[string]events.SessionView{}, Receipts: map[events.ReceiptID]events.Receipt{}}
	for s, err := range gw.Sessions(t.Context(), events.SessionList{}) {
		if err != nil {
			t.Fatal(err)
		}
		out.List = append(out.List, s)
	}
	for _, s := range out.List {
		v, err := gw.Show(t.Context(), s.Keys[0])
		if err != nil {
			t.Fatal(err)
		}
		out.Shown[s.Keys[0]] = v
	}
	for _, id := range receipts {
		r, err := gw.Receipt(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		out.Receipts[id] = r
	}
	return out
}

// live gives sessions a life: messages, more names, ends and new epochs.
func live(t *testing.T, gw *client.Conn, from, to int) (receipts []events.ReceiptID) {
	t.Helper()
	for i := from; i < to; i++ {
		key := fmt.Sprint("k:", i)
		register(t, gw, key, events.Policy{Hosts: []events.PrincipalName{"nobody"}, IdleTTLMS: time.Hour.Milliseconds()})
		for n := range 1 + i%3 {
			receipts = append(receipts, submit(t, gw, key, fmt.Sprint(n)).ID)
		}
		var err error
		switch i % 4 {
		case 0:
			_, err = gw.Reset(t.Context(), key, "another topic")
		case 1:
			_, err = gw.Finalize(t.Context(), key, "over")
		case 2:
			_, err = gw.Alias(t.Context(), key, events.Names{StoredSessionID: events.StoredSessionID(fmt.Sprint("s:", i))})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return receipts
}

// end ends an authority: cleanly, or as if its lease was lost.
func (s *standing) end(cause error) {
	s.cancel(cause)
	s.done <- <-s.done
}

var errCut = errors.New("cut off")

// forgetIndex empties the stream of snapshots.
func forgetIndex(t *testing.T, b *broker.Broker) {
	t.Helper()
	js, err := jetstream.New(bustest.System(t, b))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), events.StreamSnap)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAStartFromTheKeptIndexTellsWhatTheWholeLogTells(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]bool{
		"after a clean stop":                              false,
		"after a cut, with a tail that the index has not": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Broker(t)
			gw := connectTo(t, b, "gw", events.RoleGateway)
			first := stand(t, b, func(*authority.Config) {})
			awaitActive(t, first, 5*time.Second)
			const n = 40
			receipts := live(t, gw, 0, n)
			want := ask(t, gw, receipts)
			first.end(authority.ErrStopped)
			if tail {
				cut := stand(t, b, func(c *authority.Config) { c.CheckpointEvery = time.Hour })
				awaitActive(t, cut, 5*time.Second)
				receipts = append(receipts, live(t, gw, n-4, n+4)...)
				want = ask(t, gw, receipts)
				cut.end(errCut)
			}

			second := stand(t, b, func(*authority.Config) {})
			awaitActive(t, second, 5*time.Second)
			if in := second.auth.InMemory(); in > n/2 {
				t.Errorf("%d sessions were folded at the start", in)
			}
			if diff := cmp.Diff(want, ask(t, gw, receipts)); diff != "" {
				t.Errorf("(-before +from the index):\n%s", diff)
			}
			second.end(errCut)

			forgetIndex(t, b)
			third := stand(t, b, func(*authority.Config) {})
			awaitActive(t, third, 5*time.Second)
			if diff := cmp.Diff(want, ask(t, gw, receipts)); diff != "" {
				t.Errorf("(-before +from the whole log):\n%s", diff)
			}
		})
	}
}

func TestAnIndexThatCannotBeReadIsAsGoodAsNone(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	gw := connectTo(t, b, "gw", events.RoleGateway)
	first := stand(t, b, func(*authority.Config) {})
	awaitActive(t, first, 5*time.Second)
	receipts := live(t, gw, 0, 8)
	want := ask(t, gw, receipts)
	first.end(authority.ErrStopped)
	system := bustest.System(t, b)
	for _, part := range []string{"manifest-0-a", "manifest-0-b"} {
		if _, err := system.Request(events.IndexSubject(part), []byte("no manifest"), 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	second := stand(t, b, func(*authority.Config) {})
	awaitActive(t, second, 5*time.Second)
	if in := second.auth.InMemory(); in != 8 {
		t.Errorf("%d sessions were folded, want 8", in)
	}
	if diff := cmp.Diff(want, ask(t, gw, receipts)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestASnapshotOfASessionThatDoesNotFitItsLogIsIgnored(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	gw := connectTo(t, b, "gw", events.RoleGateway)
	s := stand(t, b, quickly)
	awaitActive(t, s, 5*time.Second)
	ids := map[string]events.SessionID{}
	for _, key := range []string{"k:1", "k:2"} {
		ids[key] = register(t, gw, key, events.Policy{Hosts: []events.PrincipalName{"nobody"}})
		for i := range 80 { // long enough for a snapshot
			submit(t, gw, key, fmt.Sprint(key, i))
		}
	}
	unloaded(t, s)
	js, err := jetstream.New(bustest.System(t, b))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), events.StreamSnap)
	if err != nil {
		t.Fatal(err)
	}
	other, err := stream.GetLastMsgForSubject(t.Context(), events.SnapSubject(profile, ids["k:2"].Scope()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), events.SnapSubject(profile, ids["k:1"].Scope()), other.Data); err != nil {
		t.Fatal(err)
	}
	for key, id := range ids {
		v, err := gw.Show(t.Context(), key)
		if err != nil || v.Session != id || v.Pending != 80 || v.Queue[0].Text != key+"0" {
			t.Errorf("%s is shown as session %s with %d waiting, %v", key, v.Session, v.Pending, err)
		}
	}
}
