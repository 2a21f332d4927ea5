package approvals_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/execution"
	"keryx/internal/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const profile = events.Profile("p1")

// stage is a whole bus, reached over loopback so that everybody outlives its restarts,
// with a real executor whose target asks for every command, and a session.
type stage struct {
	t       *testing.T
	cfg     node.Config
	node    *node.Node
	op, gw  *client.Conn
	session events.SessionID
	dir     string // of markers
	runner  func() // stops the executor
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), cfg: node.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), AuthorityTTL: 2 * time.Second}}
	s.start()
	s.cfg.Listen = strings.TrimPrefix(s.node.Broker().URL(), "nats://")
	t.Cleanup(s.stop)
	s.op, s.gw = s.connect("op", events.RoleOperator), s.connect("gw", events.RoleGateway)
	r, err := s.gw.Register(s.within(), events.Names{GatewaySessionKey: "k"}, events.Policy{Approvers: []events.PlatformUser{"chat:alice"}})
	if err != nil {
		t.Fatal(err)
	}
	s.session = r.Session
	return s
}

func (s *stage) start() {
	s.t.Helper()
	var err error
	s.until("the bus to start", func() bool {
		s.node, err = node.Start(s.within(), s.cfg)
		// A child that another test forks at this moment has a copy of the lock until
		// it executes its program.
		var held *broker.HeldError
		return err == nil || !errors.As(err, &held)
	})
	if err != nil {
		s.t.Fatalf("start bus: %v", err)
	}
	s.until("the authority to be active", s.node.Ready)
}

func (s *stage) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.node.Stop(ctx); err != nil {
		s.t.Errorf("stop bus: %v", err)
	}
}

func (s *stage) within() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *stage) until(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			s.t.Fatalf("waited 20 s for %s; the record has %v", what, s.types())
		}
	}
}

func (s *stage) connect(name events.PrincipalName, role events.Role) *client.Conn {
	s.t.Helper()
	creds := bustest.Principal(s.t, s.node.Broker(), profile, name, role)
	c, err := client.Connect(s.t.Context(), client.Config{URL: "nats://" + s.cfg.Listen, Credentials: creds, Logger: s.cfg.Logger})
	if err != nil {
		s.t.Fatalf("connect %s: %v", name, err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// execute runs an executor for a target until stop is called, at the latest at the end.
func (s *stage) execute(name events.PrincipalName, spec events.TargetSpec) (stop func()) {
	s.t.Helper()
	c := s.connect(name, events.RoleExecutor)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- execution.Run(ctx, c, execution.Config{Target: spec, SpoolDir: s.t.TempDir(), Logger: s.cfg.Logger, Environ: []string{"PATH=/usr/bin:/bin"}})
	}()
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("executor: %v", err)
		}
	}
	s.t.Cleanup(stop)
	return stop
}

func asking(d events.ApprovalDecision) events.TargetSpec {
	return events.TargetSpec{Name: "local", Kind: "terminal", Approval: &events.ApprovalPolicy{Default: d}}
}

// touch asks for a command that leaves a mark.
func (s *stage) touch() (a events.ExecAnswer, marker string) {
	s.t.Helper()
	var sel events.Selection
	var err error
	s.until("the target", func() bool {
		sel, err = s.op.SelectTarget(s.within(), "local")
		return err == nil
	})
	marker = filepath.Join(s.dir, events.NewID())
	a, err = s.op.StartExec(s.within(), events.StartExec{
		Session: s.session, Selection: sel, Spec: events.ExecSpec{Argv: []string{"/bin/sh", "-c", "echo x >>" + marker}, EnvSet: map[string]string{"A": "1"}, Stdin: []byte("in")},
	})
	if err != nil {
		s.t.Fatalf("start exec: %v", err)
	}
	return a, marker
}

// marks counts how often a command ran.
func marks(t *testing.T, marker string) int {
	t.Helper()
	b, err := os.ReadFile(marker)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "x")
}

func (s *stage) records() []events.Record {
	s.t.Helper()
	page, err := s.gw.Page(s.within(), s.session.Scope(), 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return page.Records
}

func (s *stage) types() []string {
	var out []string
	page, err := s.gw.Page(s.within(), s.session.Scope(), 0, 0)
	if err != nil {
		return []string{err.Error()}
	}
	for _, r := range page.Records {
		out = append(out, r.Type.Short())
	}
	return out
}

// end waits for the end of an exec and returns the code of its refusal; empty if it ran.
func (s *stage) end(id events.ExecID) (code events.Code) {
	s.t.Helper()
	s.until("the end of the exec", func() bool {
		for _, r := range s.records() {
			if d, err := events.DataOf[events.ExecRefused](r); r.Type == events.TypeExecRefused && err == nil && d.Exec == id {
				code = d.Code
				return true
			}
			if d, err := events.DataOf[events.ExecExited](r); r.Type == events.TypeExecExited && err == nil && d.Exec == id {
				return true
			}
		}
		return false
	})
	return code
}

// says reports whether an event of a type is on record.
func (s *stage) says(t events.Type) bool {
	for _, r := range s.records() {
		if r.Type == t {
			return true
		}
	}
	return false
}
