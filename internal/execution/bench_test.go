package execution_test

import (
	"context"
	"log/slog"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/creack/pty"

	"keryx/client"
	"keryx/events"
	"keryx/internal/execution"
	"keryx/internal/node"
)

// site is a bus with an executor, and an operator with a session.
type site struct {
	op      *client.Conn
	session events.SessionID
	asked   time.Time // when the last command was asked for
}

func newSite(b *testing.B) *site {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
	n, err := node.Start(b.Context(), node.Config{Dir: b.TempDir(), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	connect := func(name events.PrincipalName, role events.Role) *client.Conn {
		c, err := n.Connect(b.Context(), events.Principal{Profile: "default", Name: name, Role: role})
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	runner, op := connect("runner", events.RoleExecutor), connect("operator", events.RoleOperator)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- execution.Run(ctx, runner, execution.Config{
			Target: events.TargetSpec{Name: "local"}, SpoolDir: b.TempDir(), Environ: []string{"PATH=/usr/bin:/bin"}, Logger: quiet,
		})
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		_ = op.Close()
		_ = runner.Close()
		if err := n.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	reg, err := op.Register(b.Context(), events.Names{GatewaySessionKey: "bench"}, events.Policy{})
	if err != nil {
		b.Fatal(err)
	}
	return &site{op: op, session: reg.Session}
}

// start asks for a command; fn gets its output.
func (s *site) start(b *testing.B, spec events.ExecSpec, started func(events.StartExec, events.ExecAnswer), fn func(client.Chunk)) {
	b.Helper()
	sel, err := s.op.AwaitTarget(b.Context(), "local")
	if err != nil {
		b.Fatal(err)
	}
	start := events.StartExec{Session: s.session, Selection: sel, Spec: spec}
	v, err := s.op.Show(b.Context(), string(s.session))
	if err != nil {
		b.Fatal(err)
	}
	s.asked = time.Now() // a host has selected its target before
	if _, err := s.op.RunExec(b.Context(), start, v.LastSeq, func(a events.ExecAnswer) { started(start, a) }, fn); err != nil {
		b.Fatal(err)
	}
}

// quantiles reports p50 and p99 of what was measured.
func quantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}

// BenchmarkExecToFirstByte is from the request of a command until its first byte is there.
func BenchmarkExecToFirstByte(b *testing.B) {
	b.Run("bus", func(b *testing.B) {
		s := newSite(b)
		var took []time.Duration
		for b.Loop() {
			first := time.Duration(0)
			s.start(b, events.ExecSpec{Argv: []string{"/bin/echo", "x"}}, func(events.StartExec, events.ExecAnswer) {}, func(client.Chunk) {
				if first == 0 {
					first = time.Since(s.asked)
				}
			})
			took = append(took, first)
		}
		quantiles(b, took)
	})
	b.Run("fork and read", func(b *testing.B) {
		var took []time.Duration
		buf := make([]byte, 16)
		for b.Loop() {
			asked := time.Now()
			cmd := exec.Command("/bin/echo", "x")
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			if _, err := out.Read(buf); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(asked))
			if err := cmd.Wait(); err != nil {
				b.Fatal(err)
			}
		}
		quantiles(b, took)
	})
}

// echoer gives back each byte that is typed, at once.
var echoer = []string{"/bin/sh", "-c", "stty raw -echo; printf r; exec cat"}

// keyPause is between two keys, faster than anybody types: keys that come within 10 ms of
// each other are echoed together.
const keyPause = 20 * time.Millisecond

// BenchmarkKeyToEcho is from a key typed until the program's echo of it is there.
func BenchmarkKeyToEcho(b *testing.B) {
	b.Run("bus", func(b *testing.B) {
		s := newSite(b)
		echoed, keys := make(chan struct{}, 1024), make(chan *client.Keys, 1)
		ended := make(chan struct{})
		var of events.StartExec
		var id events.ExecID
		go func() {
			defer close(ended)
			s.start(b, events.ExecSpec{Argv: echoer, PTY: &events.PTYSize{Rows: 24, Cols: 80}}, func(start events.StartExec, a events.ExecAnswer) {
				k, err := s.op.OpenKeys(start.Selection.Executor, s.session, a.Exec, nil)
				if err != nil {
					b.Error(err)
				}
				of, id = start, a.Exec
				keys <- k
			}, func(c client.Chunk) {
				for range c.Data {
					echoed <- struct{}{}
				}
			})
		}()
		k := <-keys
		<-echoed
		var took []time.Duration
		for b.Loop() {
			<-time.After(keyPause)
			typed := time.Now()
			if err := k.Send(0, events.TTYFrame{AccessEpoch: of.Selection.AccessEpoch, Data: []byte("k")}); err != nil {
				b.Fatal(err)
			}
			<-echoed
			took = append(took, time.Since(typed))
		}
		quantiles(b, took)
		if _, err := s.op.StopExec(b.Context(), events.StopExec{Session: s.session, Exec: id}); err != nil {
			b.Fatal(err)
		}
		<-ended
	})
	b.Run("terminal", func(b *testing.B) {
		cmd := exec.Command(echoer[0], echoer[1:]...)
		tty, err := pty.Start(cmd)
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 16)
		if _, err := tty.Read(buf); err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for b.Loop() {
			typed := time.Now()
			if _, err := tty.Write([]byte("k")); err != nil {
				b.Fatal(err)
			}
			if _, err := tty.Read(buf); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(typed))
		}
		quantiles(b, took)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		_ = tty.Close()
	})
}

// BenchmarkTerminalAtClient is what a client sees of BenchmarkTerminalDirect of
// internal/process: from the request of the command until its last byte is there.
func BenchmarkTerminalAtClient(b *testing.B) {
	const bulk = 64 << 20
	s := newSite(b)
	b.SetBytes(bulk)
	for b.Loop() {
		total, missing := int64(0), int64(0)
		spec := events.ExecSpec{Argv: []string{"/bin/sh", "-c", "stty raw; head -c 67108864 /dev/zero"}, PTY: &events.PTYSize{Rows: 24, Cols: 80}}
		s.start(b, spec, func(events.StartExec, events.ExecAnswer) {}, func(c client.Chunk) {
			total, missing = total+int64(len(c.Data)), missing+c.Missing
		})
		if total+missing != bulk {
			b.Fatalf("%d bytes came, and %d are said to be missing", total, missing)
		}
		b.ReportMetric(float64(missing)/bulk, "missing/op")
	}
}
