package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"keryx/events"
)

// jsCommands starts integrations/js-host/command.mjs, which carries out /rot13, /where and /nap.
func (b *bench) jsCommands() *process {
	b.t.Helper()
	fetch := exec.Command("../../tools/fetch-test-tools", "js-host")
	fetch.Stderr = os.Stderr
	if err := fetch.Run(); err != nil {
		b.t.Fatalf("get Node.js and its packages: %v", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		b.t.Fatal(err)
	}
	p := b.startPath(nil, "", node, "../../integrations/js-host/command.mjs", "--url", b.url(), "--creds", b.creds("sh"), "--lease-ms", "2000")
	b.await("the commands to be there", 30*time.Second, func() bool { return strings.Contains(p.stderr.String(), "carrying out") })
	return p
}

func (g *gateway) names(surface string) string {
	g.t.Helper()
	all, err := g.SlashCommands(g.within(20*time.Second), surface)
	if err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, c := range all {
		if c.Handler != "" {
			out = append(out, string(c.Name))
		}
	}
	return strings.Join(out, " ")
}

func (g *gateway) gives(name events.CommandName, args, surface string) events.InvocationView {
	g.t.Helper()
	v, err := g.Invoke(g.within(40*time.Second), events.InvokeCommand{To: "chat:1", Name: name, RawArgs: args, Surface: surface})
	if err != nil {
		g.t.Fatalf("/%s: %v", name, err)
	}
	return v
}

// A handler in another language carries out commands, is killed in the middle of one, and
// another process takes its place: the one that was under way has failed and is not run
// again.
func TestSlashCommandsOfAProcessThatDies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	g := b.gateway()
	id := g.register("chat:1")
	if got := g.names("web"); got != "" {
		t.Errorf("before anybody is there: %s", got)
	}
	p := b.jsCommands()
	if web, http := g.names("web"), g.names("http"); web != "nap where" || http != "rot13" {
		t.Errorf("on web %q, over http %q", web, http)
	}
	if v := g.gives("rot13", "Hello,  bus ", "pipe"); v.State != events.InvocationCompleted || v.Reply != "Uryyb,  ohf " {
		t.Errorf("/rot13: %+v", v)
	}
	if v := g.gives("where", "", "web"); v.Reply != `{"gateway_session_key":"chat:1","surface":"web","task_id":null}` {
		t.Errorf("/where: %+v", v)
	}
	v, err := g.Invoke(g.within(20*time.Second), events.InvokeCommand{To: "chat:1", Name: "nap", RawArgs: "50", Surface: "web", Async: true})
	if err != nil || v.State != events.InvocationRunning {
		t.Fatalf("/nap 50: %+v, %v", v, err)
	}
	b.await("the nap", 20*time.Second, func() bool { return strings.Contains(p.stderr.String(), "napping 50") })
	p.kill()
	b.await("the command to fail", 20*time.Second, func() bool {
		v, err = g.Invocation(g.within(20*time.Second), id, v.Invocation)
		return err == nil && v.State == events.InvocationFailed
	})
	if v.Error.Code != events.CodeUnavailable || !strings.Contains(v.Error.Message, "not given again") {
		t.Errorf("failed as %+v", v.Error)
	}
	if got := g.names("web"); got != "" {
		t.Errorf("after its death there is %q", got)
	}
	again := b.jsCommands()
	if got := g.names("web"); got != "nap where" {
		t.Errorf("the next process carries out %q", got)
	}
	if v := g.gives("rot13", "uryyb", "pipe"); v.Reply != "hello" {
		t.Errorf("/rot13: %+v", v)
	}
	if strings.Contains(again.stderr.String(), "napping 50") {
		t.Error("a command was given again")
	}
	if code := again.terminate(); code != 0 {
		t.Errorf("exit %d: %s", code, again.stderr.String())
	}
	if got := g.names("http"); got != "" {
		t.Errorf("after a clean stop there is %q", got)
	}
}
