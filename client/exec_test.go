package client_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// executor stands in for a machine that runs things: what it is told to start says the
// text of argv[1], and ends when argv[0] is "say" or when it is stopped.
type executor struct {
	t      testing.TB
	conn   *client.Conn
	keeper *client.Keeper
	mu     sync.Mutex
	stops  map[events.ExecID]chan struct{}
}

func startExecutor(b *bus, target events.TargetName) *executor {
	b.t.Helper()
	c := b.connect("exec", events.RoleExecutor)
	x := &executor{t: b.t, conn: c, stops: make(map[events.ExecID]chan struct{})}
	x.keeper = client.NewKeeper(client.KeeperConfig{Caller: c, Instance: c.Instance(), Logger: quiet()})
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { x.keeper.Run(ctx) })
	b.t.Cleanup(func() { cancel(); keeping.Wait() })
	sub, err := c.NATS().Subscribe(events.ExecAll(profile, "exec", c.Instance()), x.order)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = sub.Unsubscribe() })
	key := events.LeaseKey{Profile: profile, Kind: events.LeaseTarget, Name: string(target)}
	held, err := x.keeper.Acquire(within(b.t, 10*time.Second), key, client.LeaseTerms{})
	if err != nil {
		b.t.Fatalf("acquire %s: %v", key, err)
	}
	if _, err := c.RegisterTarget(within(b.t, 10*time.Second), events.TargetSpec{Name: target, Kind: "terminal"}, held.Fence()); err != nil {
		b.t.Fatalf("register target: %v", err)
	}
	return x
}

func (x *executor) order(m *nats.Msg) {
	switch m.Subject[strings.LastIndexByte(m.Subject, '.')+1:] {
	case string(events.ExecStart):
		var o events.StartOrder
		if err := json.Unmarshal(m.Data, &o); err != nil {
			x.t.Error(err)
			return
		}
		x.mu.Lock()
		if x.stops[o.Request.Exec] == nil { // an order may be told again
			x.stops[o.Request.Exec] = make(chan struct{})
			go x.run(o, x.stops[o.Request.Exec])
		}
		x.mu.Unlock()
	case string(events.ExecStop):
		var o events.StopOrder
		if err := json.Unmarshal(m.Data, &o); err != nil {
			x.t.Error(err)
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if c := x.stops[o.Exec]; c != nil {
			close(c)
			x.stops[o.Exec] = nil
		}
	}
}

func (x *executor) run(o events.StartOrder, stop <-chan struct{}) {
	ctx, argv := within(x.t, 20*time.Second), o.Request.Spec.Argv
	sel := o.Request.Selection
	if argv[0] == "refuse" {
		x.report(ctx, events.CmdExecReportRefused, events.ReportRefused{Session: o.Session, Instance: x.conn.Instance(), Fact: events.ExecRefused{
			Exec: o.Request.Exec, Code: events.CodeLaunchFailed, Message: "no such file",
		}})
		return
	}
	x.report(ctx, events.CmdExecReportStarted, events.ReportStarted{
		Session: o.Session, Instance: x.conn.Instance(), LeaseFence: sel.LeaseFence, Fact: events.ExecStarted{Exec: o.Request.Exec, PID: 1},
	})
	m := nats.NewMsg(events.OutSubject(profile, "exec", o.Session, o.Request.Exec))
	m.Header.Set(events.HeaderStream, "stdout")
	m.Header.Set(events.HeaderChunk, "1")
	m.Header.Set(events.HeaderOffset, strconv.Itoa(0))
	m.Data = []byte(argv[1])
	if err := x.conn.NATS().PublishMsg(m); err != nil {
		x.t.Error(err)
	}
	fact := events.ExecExited{
		Exec: o.Request.Exec, Cleanup: events.CleanupSwept,
		Streams: []events.StreamSummary{{Name: "stdout", Bytes: int64(len(argv[1])), SHA256: strings.Repeat("0", 64)}},
	}
	if argv[0] != "say" {
		<-stop
		fact.Stopped, fact.ExitCode = true, -1
	}
	x.report(ctx, events.CmdExecReportExited, events.ReportExited{Session: o.Session, Instance: x.conn.Instance(), Fact: fact})
}

func (x *executor) report(ctx context.Context, typ events.Type, data any) {
	if err := x.conn.Do(ctx, typ, data, nil); err != nil {
		x.t.Errorf("%s: %v", typ.Short(), err)
	}
}

// execBus is a bus with an executor and a session whose messages are run in it.
func execBus(t *testing.T, results chan<- error) (*bus, *client.Conn) {
	t.Helper()
	b := startBus(t)
	startExecutor(b, "local")
	gw := b.connect("gw", events.RoleGateway)
	_, err := gw.Register(t.Context(), events.Names{GatewaySessionKey: "k"}, events.Policy{Target: "local"})
	if err != nil {
		t.Fatal(err)
	}
	b.serve(b.connect("agent", events.RoleHost), client.HostConfig{Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		var out strings.Builder
		exited, err := turn.Exec(ctx, events.ExecSpec{Argv: strings.Fields(turn.Items[0].Body.Text)}, func(c client.Chunk) {
			out.Write(c.Data)
			if err := turn.Part(string(c.Data)); err != nil {
				t.Errorf("part: %v", err)
			}
		})
		if err != nil {
			results <- err
			return client.Result{Error: err.Error()}
		}
		if exited.Stopped {
			return client.Result{Reply: out.String() + " (stopped)"}
		}
		return client.Result{Reply: out.String()}
	}})
	return b, gw
}

func TestATurnRunsACommandAndItsOutputIsTheReply(t *testing.T) {
	t.Parallel()
	b, gw := execBus(t, nil)
	for range 5 {
		if v := b.settled(gw, b.submit(gw, "k", "say hello")); v.Reply != "hello" || v.Outcome != events.OutcomeCompleted {
			t.Errorf("the turn is %+v", v)
		}
	}
}

func TestAnInterruptedTurnStopsItsCommandAndWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	b, gw := execBus(t, nil)
	show, err := gw.Show(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	parts := make(chan *nats.Msg, 8)
	if _, err := gw.NATS().ChanSubscribe(events.PartAll(profile, show.Session), parts); err != nil {
		t.Fatal(err)
	}
	id := b.submit(gw, "k", "wait begun")
	receive(t, "the first output", parts)
	if _, err := gw.Interrupt(within(t, 10*time.Second), "k", "", "enough"); err != nil {
		t.Fatal(err)
	}
	if v := b.settled(gw, id); v.Reply != "begun (stopped)" || v.Outcome != events.OutcomeAborted {
		t.Errorf("the turn is %+v", v)
	}
}

func TestACommandThatIsRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 1)
	b, gw := execBus(t, errs)
	if v := b.settled(gw, b.submit(gw, "k", "refuse x")); v.Outcome != events.OutcomeFailed {
		t.Errorf("the turn is %+v", v)
	}
	wantCode(t, <-errs, events.CodeLaunchFailed)
}

func TestATurnWithoutATargetRunsNothing(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw := b.connect("gw", events.RoleGateway)
	b.register(gw, "k")
	errs := make(chan error, 1)
	b.serve(b.connect("agent", events.RoleHost), client.HostConfig{Handle: func(ctx context.Context, turn *client.Turn) client.Result {
		_, err := turn.Exec(ctx, events.ExecSpec{Argv: []string{"true"}}, func(client.Chunk) {})
		errs <- err
		return client.Result{}
	}})
	b.settled(gw, b.submit(gw, "k", "m"))
	wantCode(t, <-errs, events.CodeUnknownTarget)
}
