package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/node"
)

// runner offers a target, says that all it is told to start runs, and ends what it is told
// to stop.
func runner(t *testing.T, n *node.Node) {
	t.Helper()
	c := connect(t, n, "runner", events.RoleExecutor)
	p := c.Principal()
	orders := make(chan *nats.Msg, 64)
	sub, err := c.NATS().ChanSubscribe(events.ExecAll(p.Profile, p.Name, c.Instance()), orders)
	if err != nil {
		t.Fatal(err)
	}
	key := events.LeaseKey{Profile: p.Profile, Kind: events.LeaseTarget, Name: "local"}
	lease, err := c.AcquireLease(t.Context(), events.AcquireLease{Key: key, TTLMS: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RegisterTarget(t.Context(), events.TargetSpec{Name: "local", Kind: "terminal", Home: "/home/k"}, lease.Fence); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case m := <-orders:
				obey(ctx, t, c, m)
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = sub.Unsubscribe()
	})
}

func obey(ctx context.Context, t *testing.T, c *client.Conn, m *nats.Msg) {
	t.Helper()
	var err error
	switch m.Subject[strings.LastIndexByte(m.Subject, '.')+1:] {
	case string(events.ExecStart):
		var o events.StartOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			err = c.ReportStarted(ctx, events.ReportStarted{
				Session: o.Session, LeaseFence: o.Request.Selection.LeaseFence, Fact: events.ExecStarted{Exec: o.Request.Exec, PID: 7},
			})
		}
	case string(events.ExecStop):
		var o events.StopOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			err = c.ReportExited(ctx, events.ReportExited{Session: o.Session, Fact: events.ExecExited{
				Exec: o.Exec, ExitCode: -1, Signal: "SIGTERM", Stopped: true, Cleanup: events.CleanupProved, Streams: []events.StreamSummary{},
			}})
		}
	case string(events.ExecSetup):
		var o events.SetupOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			err = c.ReportProgress(ctx, events.SetupProgressed{Run: o.Plan.Run, Progress: events.SetupProgress{Step: 1, Total: 2, Percent: 50, Message: "half\x1b[2J"}})
		}
	case string(events.ExecSetupStop):
		var o events.SetupStopOrder
		if err = json.Unmarshal(m.Data, &o); err == nil {
			_, err = c.ReportSetupEnded(ctx, events.ReportSetupEnded{Run: o.Run, Code: events.CodeSetupFailed, End: &events.SetupEnd{Cleanup: events.CleanupProved}})
		}
	}
	if err != nil && ctx.Err() == nil {
		t.Errorf("obey %s: %v", m.Subject, err)
	}
}

func TestJobsAreStartedListedAndEndedByTheOperator(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	runner(t, n)
	f := newFront()
	c := chat(t, gateway.Config{
		Conn: connect(t, n, "cli", events.RoleGateway), Operator: connect(t, n, "operator", events.RoleOperator), Key: "k", Target: "local",
	}, f)
	if got, err := c.Jobs(t.Context()); got != "no jobs" || err != nil {
		t.Errorf("jobs are %q, %v", got, err)
	}
	var ids []events.ExecID
	for _, command := range []string{"sleep 300", "-x; echo \x1b[2J"} {
		id, err := c.Background(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	end := func(id events.ExecID) string { return string(id[len(id)-6:]) }
	want := end(ids[0]) + "  running  sleep 300\n" + end(ids[1]) + "  running  -x; echo \\x1b[2J"
	awaitJobs(t, c, want)
	if _, err := c.Kill(t.Context(), " "+strings.ToLower(end(ids[0]))); err != nil {
		t.Errorf("kill: %v", err)
	}
	awaitJobs(t, c, end(ids[1])+"  running  -x; echo \\x1b[2J")
	f.line(t, "message runner own false: job "+string(ids[0])+" was stopped after 0s: /bin/sh -c -- sleep 300")
	for name, code := range map[string]events.Code{end(ids[0]): events.CodeUnknownExec, "": events.CodeInternal} {
		if _, err := c.Kill(t.Context(), name); events.CodeOf(err) != code {
			t.Errorf("kill %q: %v", name, err)
		}
	}
}

func awaitJobs(t *testing.T, c *gateway.Chat, want string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		got, err := c.Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got == want {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("jobs are %q, want %q", got, want)
		}
	}
}

func TestAGatewayAloneStartsNothing(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	runner(t, n)
	conn := connect(t, n, "cli", events.RoleGateway)
	c := chat(t, gateway.Config{Conn: conn, Key: "k", Target: "local"}, newFront())
	if _, err := c.Background(t.Context(), "true"); events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("the chat says %v", err)
	}
	sel, err := conn.SelectTarget(t.Context(), "local")
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.StartExec(t.Context(), events.StartExec{Session: c.Session(), Selection: sel, Spec: events.ExecSpec{Argv: []string{"true"}}})
	if events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("the bus says %v", err)
	}
	// A job of its own session it may end, as before.
	op := connect(t, n, "operator", events.RoleOperator)
	a, err := op.StartExec(t.Context(), events.StartExec{Session: c.Session(), Selection: sel, Spec: events.ExecSpec{Argv: []string{"true"}, Background: true}})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := c.Kill(t.Context(), string(a.Exec)); id != a.Exec || err != nil {
		t.Errorf("kill: %v", err)
	}
}
