package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

// link is a connection to a bus that can be held up without being cut.
type link struct {
	addr string
	gate sync.RWMutex // locked while nothing passes
}

func startLink(t testing.TB, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{addr: l.Addr().String()}
	var work sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			work.Go(func() { k.carry(in, out) })
			work.Go(func() { k.carry(out, in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return k
}

func (k *link) carry(to io.WriteCloser, from io.Reader) {
	defer func() { _ = to.Close() }()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		k.gate.RLock()
		k.gate.RUnlock() //nolint:staticcheck // waits until something may pass
		if n > 0 {
			if _, werr := to.Write(b[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func TestATurnWhoseSessionIsTakenAwayIsToldAndReportedLate(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	way := startLink(t, hostPort(t, b.node.Broker().URL()))
	agent, err := client.Connect(t.Context(), client.Config{
		URL: "nats://" + way.addr, Logger: quiet(), Credentials: addPrincipal(t, b.node.Broker(), "agent", events.RoleHost),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, agent) })
	b.register(gw, "k")
	started, causes := make(chan struct{}, 1), make(chan error, 1)
	b.serve(agent, client.HostConfig{LeaseTTL: 2 * time.Second, Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		if turn.Items[0].Body.Text == "next" {
			return client.Result{Reply: "next"}
		}
		started <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return client.Result{Outcome: events.OutcomeCompleted, Reply: "too late"}
	}})
	id := b.submit(gw, "k", "long")
	receive(t, "the turn", started)

	way.gate.Lock() // the host is silent for longer than its lease lasts
	lost := b.settled(gw, id)
	if lost.Outcome != events.OutcomeLost {
		t.Errorf("the turn of a silent host is %+v", lost)
	}
	way.gate.Unlock()
	if cause := receive(t, "the turn to be told", causes); !errors.Is(cause, client.ErrLeaseLost) {
		t.Errorf("the context ended by %v", cause)
	}
	await(t, "the late report", func() bool {
		v, err := gw.Turn(t.Context(), lost.Turn)
		return err == nil && v.Outcome == events.OutcomeLost && v.Late != nil && v.Late.Reply == "too late"
	})
	if v := b.settled(gw, b.submit(gw, "k", "next")); v.Reply != "next" {
		t.Errorf("the next turn is %+v", v)
	}
}
