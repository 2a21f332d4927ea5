package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"keryx/events"
	"keryx/internal/execution"
)

// executor runs one in a target named local until the test ends.
func (e *edge) executor(change ...func(*events.TargetSpec)) {
	e.t.Helper()
	e.executorWith(execution.Config{}, change...)
}

func (e *edge) executorWith(cfg execution.Config, change ...func(*events.TargetSpec)) {
	e.t.Helper()
	spec := events.TargetSpec{Name: "local", Kind: "terminal", Cwd: e.t.TempDir(), Shell: "/bin/sh"}
	for _, f := range change {
		f(&spec)
	}
	c := e.connect("ex", events.RoleExecutor)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		cfg.Target = spec
		done <- execution.Run(ctx, c, cfg)
	}()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("executor: %v", err)
		}
	})
	await(e.t, "the target", func() bool {
		return e.send(e.request("GET", "/v1/targets/local", e.secrets[events.RoleObserver], "")).status == 200
	})
}

func (e *edge) run(id events.SessionID, script string, header ...string) events.ExecID {
	e.t.Helper()
	return do[events.ExecAnswer](e, events.RoleOperator, "POST", "/v1/sessions/"+string(id)+"/execs",
		fmt.Sprintf(`{"target":"local","spec":{"argv":["/bin/sh","-c",%q]}}`, script), header...).Exec
}

type execShown struct {
	State  string
	Exited *events.ExecExited
}

func TestACommandIsRunReadAndStoppedOverHTTP(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.executor()
	id := e.register("web:1")
	exec := e.run(id, "echo out; echo err >&2; exit 3", "Idempotency-Key", "run-1")
	if again := e.run(id, "echo out; echo err >&2; exit 3", "Idempotency-Key", "run-1"); again != exec {
		t.Errorf("the repeat is exec %s, not %s", again, exec)
	}
	base := "/v1/sessions/" + string(id) + "/execs/"
	s := e.stream(events.RoleObserver, base+string(exec)+"/output")
	text := map[string]string{}
	var last string
	for {
		ev := s.next()
		if ev.name == "exit" {
			if x := unmarshal[events.ExecExited](t, ev.data); x.ExitCode != 3 {
				t.Errorf("exited as %+v", x)
			}
			break
		}
		c := unmarshal[struct {
			Stream string
			Data   []byte
		}](t, ev.data)
		text[c.Stream] += string(c.Data)
		last = ev.id
	}
	if text["stdout"] != "out\n" || text["stderr"] != "err\n" {
		t.Errorf("the output is %q", text)
	}
	if ev := e.stream(events.RoleObserver, base+string(exec)+"/output", "Last-Event-ID", last).next(); ev.name != "exit" {
		t.Errorf("resumed behind the last output comes %+v", ev)
	}
	page := do[struct {
		Chunks []struct{ Data []byte }
		Stored int
	}](e, events.RoleObserver, "GET", base+string(exec)+"/output", "")
	if len(page.Chunks) != 2 || page.Stored != 2 {
		t.Errorf("the page is %+v", page)
	}
	if v := do[execShown](e, events.RoleObserver, "GET", base+string(exec), ""); v.State != "exited" || v.Exited.ExitCode != 3 {
		t.Errorf("shown as %+v", v)
	}

	long := e.run(id, "sleep 600")
	await(t, "the process to run", func() bool {
		return do[execShown](e, events.RoleObserver, "GET", base+string(long), "").State == "running"
	})
	do[events.ExecAnswer](e, events.RoleGateway, "POST", base+string(long)+"/stop", `{"grace_ms":0}`)
	stopped := e.stream(events.RoleObserver, base+string(long)+"/output").until("exit")
	if x := unmarshal[events.ExecExited](t, stopped[len(stopped)-1].data); !x.Stopped {
		t.Errorf("stopped as %+v", x)
	}
	e.refused(events.RoleObserver, events.CodeUnknownExec, "GET", base+events.NewID(), "")
	e.refused(events.RoleObserver, events.CodeUnknownExec, "GET", base+events.NewID()+"/output", "", "Accept", "text/event-stream")
	e.refused(events.RoleOperator, events.CodeUnknownTarget, "POST", "/v1/sessions/"+string(id)+"/execs", `{"target":"moon","spec":{"argv":["x"]}}`)
	e.refused(events.RoleOperator, events.CodeInvalid, "POST", "/v1/sessions/"+string(id)+"/execs", `{"spec":{"argv":["x"]}}`)
	e.refused(events.RoleOperator, events.CodeInvalid, "POST", "/v1/sessions/"+string(id)+"/execs", `{"target":7,"spec":{"argv":["x"]}}`)
}

// TestAStreamOfOutputEndsWithItsReaderAndServer leaves nobody who reads on.
func TestAStreamOfOutputEndsWithItsReaderAndServer(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.executor()
	id := e.register("web:1")
	exec := e.run(id, "while :; do echo tick; sleep 0.01; done")
	path := "/v1/sessions/" + string(id) + "/execs/" + string(exec) + "/output"
	e.stream(events.RoleObserver, path).next()
	left := e.stream(events.RoleObserver, path)
	left.next()
	left.close()
	last := e.stream(events.RoleObserver, path)
	last.next()
	do[events.ExecAnswer](e, events.RoleGateway, "POST", strings.TrimSuffix(path, "/output")+"/stop", `{"grace_ms":0}`)
	last.until("exit")
}
