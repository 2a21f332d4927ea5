package client_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// TestTheTranscriptForHostAuthorsIsWhatABusSays replays docs/hosts.md with NATS and JSON
// alone, as a host in another language would.
func TestTheTranscriptForHostAuthorsIsWhatABusSays(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	p := &play{
		t: t, vars: map[string]string{}, told: make(chan *nats.Msg, 16),
		agent: b.connect("agent", events.RoleHost), gw: b.connect("gw", events.RoleGateway),
	}
	p.vars["instance"] = string(p.agent.Instance())
	orders := "kx.host.default.agent." + p.vars["instance"] + ".>"
	if _, err := p.agent.NATS().ChanSubscribe(orders, p.told); err != nil {
		t.Fatal(err)
	}
	acts := transcript(t)
	if len(acts) < 40 {
		t.Fatalf("only %d messages in the transcript", len(acts))
	}
	for _, a := range acts {
		p.act(a)
	}
}

// TestTheMessageForHostAuthorsIsAnswered publishes the message of docs/hosts.md as it
// stands there.
func TestTheMessageForHostAuthorsIsAnswered(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```message\n")
	text, _, closed := strings.Cut(rest, "```")
	head, body, parted := strings.Cut(text, "\n\n")
	if !found || !closed || !parted {
		t.Fatal("there is no message in the page")
	}
	lines := strings.Split(head, "\n")
	m := nats.NewMsg(lines[0])
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		m.Header[name] = []string{value}
	}
	m.Data = []byte(body)
	agent := startBus(t).connect("agent", events.RoleHost)
	answer, err := agent.NATS().RequestMsg(m, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Header.Get("Keryx-Status") != "ok" || !strings.HasPrefix(string(answer.Data), `{"sessions":[`) {
		t.Errorf("it was answered %v: %s", answer.Header, answer.Data)
	}
}

// act is one message of the transcript.
type act struct {
	line           int
	who, what, doc string
}

func transcript(t *testing.T) (out []act) {
	t.Helper()
	page, err := os.ReadFile("../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for i, line := range strings.Split(string(page), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```transcript"
		case !inside || line == "":
		case strings.ContainsAny(line[:1], "{ "):
			out[len(out)-1].doc += line
		default:
			who, what, _ := strings.Cut(line, " ")
			out = append(out, act{line: i + 1, who: who, what: what})
		}
	}
	return out
}

// play holds the values of the names so far, and the answer that was not looked at yet.
type play struct {
	t         *testing.T
	agent, gw *client.Conn
	told      chan *nats.Msg
	vars      map[string]string
	answer    *nats.Msg
}

func (p *play) act(a act) {
	p.t.Helper()
	switch a.who {
	case "send":
		p.answer = p.ask(p.agent, "agent", a)
	case "gateway":
		p.answer = p.ask(p.gw, "gw", a)
	case "answer":
		p.compare(a, p.answer, events.StatusOK)
	case "refused":
		p.compare(a, p.answer, events.StatusError)
	case "told":
		m := receive(p.t, fmt.Sprintf("the %s of line %d", a.what, a.line), p.told)
		if !strings.HasSuffix(m.Subject, "."+a.what) {
			p.t.Fatalf("line %d: told on %s", a.line, m.Subject)
		}
		p.compare(a, m, "")
	default:
		p.t.Fatalf("line %d: %q", a.line, a.who)
	}
}

var variable = regexp.MustCompile(`\$[a-z0-9]+`)

// fill puts in the values of names; new ones are ids that the sender makes.
func (p *play) fill(doc string) string {
	return variable.ReplaceAllStringFunc(doc, func(name string) string {
		if p.vars[name[1:]] == "" {
			p.vars[name[1:]] = events.NewID()
		}
		return p.vars[name[1:]]
	})
}

func (p *play) ask(c *client.Conn, name string, a act) *nats.Msg {
	p.t.Helper()
	m := nats.NewMsg("kx.cmd.default." + name + "." + a.what)
	m.Header = nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {events.NewID()}, "ce-source": {"/profiles/default/principals/" + name},
		"ce-type": {"keryx.cmd." + a.what + ".v1"}, "ce-time": {time.Now().UTC().Format(time.RFC3339Nano)},
		"ce-datacontenttype": {"application/json"},
	}
	m.Data = []byte(p.fill(a.doc))
	answer, err := c.NATS().RequestMsg(m, 10*time.Second)
	if err != nil {
		p.t.Fatalf("line %d: %v", a.line, err)
	}
	return answer
}

func (p *play) compare(a act, m *nats.Msg, status string) {
	p.t.Helper()
	if got := m.Header.Get("Keryx-Status"); got != status {
		p.t.Fatalf("line %d: status %q: %s", a.line, got, m.Data)
	}
	var want, got any
	if err := json.Unmarshal([]byte(a.doc), &want); err != nil {
		p.t.Fatalf("line %d: %v", a.line, err)
	}
	if err := json.Unmarshal(m.Data, &got); err != nil {
		p.t.Fatalf("line %d: %v", a.line, err)
	}
	if at := p.differs(want, got); at != "" {
		p.t.Fatalf("line %d: %s of %s", a.line, at, m.Data)
	}
}

// differs says where a value is not as the transcript has it; what that leaves out may be
// anything.
func (p *play) differs(want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for k, v := range w {
			if at := p.differs(v, g[k]); !ok || at != "" {
				return k + " " + at
			}
		}
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Sprintf("%d elements instead of %d", len(g), len(w))
		}
		for i := range w {
			if at := p.differs(w[i], g[i]); at != "" {
				return at
			}
		}
	case string:
		g, _ := got.(string)
		if name := strings.TrimPrefix(w, "$"); name != w && p.vars[name] == "" && g != "" {
			p.vars[name] = g
		}
		if filled := p.fill(w); filled != g {
			return fmt.Sprintf("is %q, not %q", g, filled)
		}
	default:
		if want != got {
			return fmt.Sprintf("is %v, not %v", got, want)
		}
	}
	return ""
}
