package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

func TestWaitReceiptTellsEveryStateAndOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	agent, gw := b.connect("agent", events.RoleHost), b.connect("gw", events.RoleGateway)
	b.register(gw, "k")
	id := b.submit(gw, "k", "m")
	var states []events.ItemState
	done := make(chan error, 1)
	waiting := make(chan struct{}, 1)
	ctx := within(t, 30*time.Second)
	go func() {
		r, err := gw.WaitReceipt(ctx, id, func(r events.Receipt) bool {
			if n := len(states); n == 0 || states[n-1] != r.State {
				states = append(states, r.State)
			}
			select {
			case waiting <- struct{}{}:
			default:
			}
			return r.State == events.StateSettled
		})
		if err == nil && (r.Outcome != events.OutcomeCompleted || r.Turn == "") {
			err = errors.New("the receipt has no outcome or turn")
		}
		done <- err
	}()
	receive(t, "the first look", waiting)
	b.restart()
	b.serve(agent, client.HostConfig{Handle: echo})
	if err := receive(t, "the end", done); err != nil {
		t.Fatal(err)
	}
	want := []events.ItemState{events.StateQueued, events.StateOffered, events.StateAccepted, events.StateSettled}
	if !slices.Equal(states, want) {
		t.Errorf("the states are %v, want %v", states, want)
	}
}

func TestWhatWaitReceiptReadsFromTheRecordIsWhatTheBusSays(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	b.register(gw, "k")
	drop, err := gw.Submit(t.Context(), events.Submit{To: "k", Body: events.Body{Text: "d"}, OnReset: events.OnResetDrop})
	if err != nil {
		t.Fatal(err)
	}
	kept := b.submit(gw, "k", "c")
	over := func(r events.Receipt) bool { return r.State == events.StateInvalidated }
	got := make(chan events.Receipt, 2)
	ctx := within(t, 20*time.Second)
	for _, id := range []events.ReceiptID{drop.ID, kept} {
		go func() {
			r, err := gw.WaitReceipt(ctx, id, over)
			if err != nil {
				t.Errorf("wait for %s: %v", id, err)
			}
			got <- r
		}()
	}
	if _, err := gw.Reset(ctx, "k", "anew"); err != nil {
		t.Fatal(err)
	}
	if _, err := gw.Finalize(ctx, "k", "over"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := receive(t, "a receipt", got)
		said, err := gw.Receipt(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != said.State || r.Reason != said.Reason || r.Outcome != said.Outcome || r.Turn != said.Turn {
			t.Errorf("read %+v, the bus says %+v", r, said)
		}
	}
}

func TestWaitReceiptEndsWithItsContextAndRefusesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	b.register(gw, "k")
	id := b.submit(gw, "k", "m")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	never := func(events.Receipt) bool { return false }
	if r, err := gw.WaitReceipt(ctx, id, never); !errors.Is(err, context.DeadlineExceeded) || r.State != events.StateQueued {
		t.Errorf("got %+v, %v", r, err)
	}
	_, err := gw.WaitReceipt(t.Context(), events.ReceiptID(events.NewID()), never)
	wantCode(t, err, events.CodeUnknownReceipt)
}
