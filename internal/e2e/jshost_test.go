package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
)

// jsHost starts integrations/js-host, written from docs/hosts.md with NATS and JSON alone.
func (b *bench) jsHost(more ...string) *process {
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
	args := append([]string{"../../integrations/js-host/main.mjs", "--url", b.url(), "--creds", b.creds("sh"), "--lease-ms", "2000"}, more...)
	p := b.startPath(nil, "", node, args...)
	b.await("the host to serve", 20*time.Second, func() bool { return strings.Contains(p.stderr.String(), "serving as") })
	return p
}

// dial connects this process with credentials of the bench.
func (b *bench) dial(name string) *client.Conn {
	b.t.Helper()
	creds, err := client.ReadCredentials(b.creds(name))
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := client.Connect(b.t.Context(), client.Config{URL: b.url(), Credentials: creds, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return c
}

// gateway is a connection that talks to sessions.
type gateway struct {
	*client.Conn
	t *testing.T
}

func (b *bench) gateway() *gateway { return &gateway{b.dial("gw"), b.t} }

func (g *gateway) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(g.t.Context(), d)
	g.t.Cleanup(cancel)
	return ctx
}

func (g *gateway) register(key events.GatewaySessionKey) events.SessionID {
	g.t.Helper()
	r, err := g.Register(g.within(20*time.Second), events.Names{GatewaySessionKey: key}, events.Policy{})
	if err != nil {
		g.t.Fatalf("register %s: %v", key, err)
	}
	return r.Session
}

func (g *gateway) say(to, text string, mode events.Mode, allow ...events.Mode) events.ReceiptID {
	g.t.Helper()
	r, err := g.Submit(g.within(20*time.Second), events.Submit{To: to, Mode: mode, Allow: allow, Body: events.Body{Text: text}})
	if err != nil {
		g.t.Fatalf("say %q: %v", text, err)
	}
	return r.ID
}

func (g *gateway) reaches(id events.ReceiptID, state events.ItemState) events.Receipt {
	g.t.Helper()
	r, err := g.WaitReceipt(g.within(30*time.Second), id, func(r events.Receipt) bool { return r.State == state })
	if err != nil {
		g.t.Fatalf("wait for %s to be %s, it is %+v: %v", id, state, r, err)
	}
	return r
}

// replied waits for the end of an item's turn.
func (g *gateway) replied(id events.ReceiptID) events.TurnView {
	g.t.Helper()
	v, err := g.Turn(g.within(20*time.Second), g.reaches(id, events.StateSettled).Turn)
	if err != nil {
		g.t.Fatal(err)
	}
	return v
}

func (g *gateway) wants(id events.ReceiptID, outcome events.Outcome, reply string) {
	g.t.Helper()
	if v := g.replied(id); v.Outcome != outcome || v.Reply != reply {
		g.t.Errorf("turn %s was %s with %q (%s), want %s with %q", v.Turn, v.Outcome, v.Reply, v.Error, outcome, reply)
	}
}

// done counts what the agent of a JavaScript host did with each receipt.
func (p *process) did(what string) map[string]int {
	p.t.Helper()
	out := map[string]int{}
	for line := range strings.Lines(p.stdout.String()) {
		var d struct {
			Does  string
			Items []string
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			continue // cut by a kill
		}
		if d.Does == what {
			for _, id := range d.Items {
				out[id]++
			}
		}
	}
	return out
}

func TestAHostInJavaScriptDrivesSessions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	g := b.gateway()
	g.register("js:1")
	before := g.say("js:1", "before you came", events.ModeEnqueue)
	host := b.jsHost("--max-turns", "1")
	g.wants(before, events.OutcomeCompleted, "you said before you came")
	g.wants(g.say("js:1", "fail", events.ModeEnqueue), events.OutcomeFailed, "")

	listening := g.say("js:1", "listen", events.ModeEnqueue)
	g.reaches(listening, events.StateAccepted)
	steer := g.say("js:1", "in English", events.ModeSteer)
	g.wants(steer, events.OutcomeCompleted, "heard in English")
	if a, s := g.replied(listening).Turn, g.replied(steer).Turn; a != s {
		t.Errorf("the steer went into turn %s, not into %s", s, a)
	}

	waiting := g.say("js:1", "wait 60000", events.ModeEnqueue)
	g.reaches(waiting, events.StateAccepted)
	g.register("js:2") // the host takes one turn at a time and declines the second
	second := g.say("js:2", "later", events.ModeEnqueue)
	b.await("a decline", 20*time.Second, func() bool {
		v, err := g.Show(g.within(10*time.Second), "js:2")
		return err == nil && v.Pending == 1 && b.counts("js:2")["continuation.requeued"] > 0
	})
	interrupting := g.say("js:1", "stop", events.ModeInterrupt)
	g.wants(waiting, events.OutcomeAborted, "")
	g.wants(interrupting, events.OutcomeCompleted, "you said stop")
	g.wants(second, events.OutcomeCompleted, "you said later")

	if code := host.terminate(); code != 0 {
		t.Errorf("the host exited %d", code)
	}
	if got := b.counts("js:1"); got["session.attached"] != 1 || got["session.detached"] != 1 {
		t.Errorf("the record of js:1 has %v", got)
	}
}

// counts counts the events of a session by their short type.
func (b *bench) counts(key string) map[string]int {
	b.t.Helper()
	out := map[string]int{}
	for line := range strings.Lines(b.run("bus", "replay", key, "--dir", b.store(), "--json")) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.t.Fatal(err)
		}
		out[strings.TrimSuffix(strings.TrimPrefix(e.Type, "keryx."), ".v1")]++
	}
	return out
}

func TestABusKilledUnderAHostInJavaScriptEndsNoTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bus := b.serving()
	g := b.gateway()
	g.register("js:1")
	host := b.jsHost()
	during := g.say("js:1", "wait 3000", events.ModeEnqueue)
	g.reaches(during, events.StateAccepted)
	bus.kill()
	b.away(4 * time.Second) // the turn ends meanwhile, and the lease of 2 s is over
	b.serving()
	g.wants(during, events.OutcomeCompleted, "waited 3000 ms")
	g.wants(g.say("js:1", "and on", events.ModeEnqueue), events.OutcomeCompleted, "you said and on")
	if n := host.did("begin"); n[string(during)] != 1 {
		t.Errorf("the agent began the message %d times", n[string(during)])
	}
	if got := b.counts("js:1"); got["session.attached"] != 1 || got["session.detached"] != 0 || got["turn.reported_late"] != 0 {
		t.Errorf("the record has %v", got) // attached again with its instance it has kept the session
	}
}

func TestAHostInJavaScriptKilledInATurnLosesItAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	g := b.gateway()
	g.register("js:1")
	host := b.jsHost()
	during := g.say("js:1", "wait 60000", events.ModeEnqueue)
	g.reaches(during, events.StateAccepted)
	waiting := g.say("js:1", "next", events.ModeEnqueue)
	b.await("the agent to begin", 20*time.Second, func() bool { return host.did("begin")[string(during)] == 1 })
	host.kill()
	next := b.jsHost()
	g.wants(during, events.OutcomeLost, "")
	g.wants(waiting, events.OutcomeCompleted, "you said next")
	begun := maps.Clone(host.did("begin"))
	for id, n := range next.did("begin") {
		begun[id] += n
	}
	for _, id := range []events.ReceiptID{during, waiting} {
		if begun[string(id)] != 1 {
			t.Errorf("message %s was begun %d times", id, begun[string(id)])
		}
	}
	ids := slices.Sorted(maps.Keys(next.did("begin")))
	if !slices.Equal(ids, []string{string(waiting)}) {
		t.Errorf("the second host began %v", ids)
	}
	if _, err := g.Requeue(g.within(10*time.Second), during); !errors.Is(err, events.ErrOf(events.CodeWrongState)) {
		t.Errorf("a lost message was requeued: %v", err)
	}
}
