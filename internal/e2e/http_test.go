package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keryx/events"
)

// api is an HTTP API that a test speaks to.
type api struct {
	b   *bench
	url string
	dir string // of the bus
}

// startOpen starts a binary with a standard input that stays open.
func (b *bench) startOpen(env []string, name string, args ...string) (*process, io.WriteCloser) {
	b.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = w.Close() })
	p := &process{t: b.t, cmd: exec.Command(filepath.Join(binaries, name), args...), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdin = append(os.Environ(), env...), r
	p.stdout, p.stderr = &lockedBuffer{}, &lockedBuffer{}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	_ = r.Close()
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	b.t.Cleanup(func() {
		p.kill()
		if b.t.Failed() {
			b.t.Logf("%s said:\n%s%s", name, p.stdout, p.stderr)
		}
	})
	return p, w
}

// apiOf waits until an API is announced.
func (b *bench) apiOf(p *process, dir string) *api {
	b.t.Helper()
	a := &api{b: b, dir: dir}
	b.await("the API to be served", 20*time.Second, func() bool {
		_, rest, ok := strings.Cut(p.stderr.String(), "HTTP API: ")
		if ok {
			a.url, _, ok = strings.Cut(rest, " ")
		}
		return ok
	})
	return a
}

// token makes a token and returns the file that has its secret.
func (a *api) token(name string, role events.Role) string {
	a.b.t.Helper()
	file := filepath.Join(a.b.dir, name+".token")
	secret := a.b.run("bus", "token", "add", name, "--role", string(role), "--dir", a.dir)
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		a.b.t.Fatal(err)
	}
	return file
}

// asked sends a request, again while the API is away, and decodes the answer.
func asked[A any](a *api, tokenFile, method, path, body string) A {
	a.b.t.Helper()
	secret, err := os.ReadFile(tokenFile)
	if err != nil {
		a.b.t.Fatal(err)
	}
	var out A
	a.b.await(method+" "+path, 30*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(a.b.t.Context(), 20*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
		if err != nil {
			a.b.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		switch {
		case err != nil, resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
			return false
		case resp.StatusCode != http.StatusOK:
			a.b.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
		}
		if err := json.Unmarshal(text, &out); err != nil {
			a.b.t.Fatal(err)
		}
		return true
	})
	return out
}

func (a *api) say(tokenFile, to, text string) events.Receipt {
	return asked[events.Receipt](a, tokenFile, "POST", "/v1/sessions/"+to+"/messages", fmt.Sprintf(`{"body":{"text":%q}}`, text))
}

// js starts a program of integrations/js-http.
func (a *api) js(program string, tokenFile string, more ...string) *process {
	a.b.t.Helper()
	fetch := exec.Command("../../tools/fetch-test-tools", "js-http")
	fetch.Stderr = os.Stderr
	if err := fetch.Run(); err != nil {
		a.b.t.Fatalf("get Node.js and its packages: %v", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		a.b.t.Fatal(err)
	}
	args := append([]string{"../../integrations/js-http/" + program, "--url", a.url, "--token-file", tokenFile}, more...)
	return a.b.startPath(nil, "", node, args...)
}

// bridged is a bus and an edge in processes of their own.
func (b *bench) bridged() (*process, *api) {
	b.t.Helper()
	for role, name := range map[string]string{"gateway": "edge", "host": "edge-host"} {
		b.run("bus", "user", "add", name, "--role", role, "--out", b.creds(name), "--dir", b.store())
	}
	bus := b.serving()
	bridge := b.start("", "gateway-bridge", "--url", b.url(), "--api", freeAddr(b.t), "--api-creds", b.creds("edge"), "--api-creds", b.creds("edge-host"))
	return bus, b.apiOf(bridge, b.store())
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// TestJavaScriptLivesOnHTTP has the official CloudEvents SDK send in every mode, and a host
// in JavaScript answer, over a kill of the bus.
func TestJavaScriptLivesOnHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bus, a := b.bridged()
	gw, host := a.token("web", events.RoleGateway), a.token("agent", events.RoleHost)
	asked[events.Registered](a, gw, "POST", "/v1/sessions", `{"names":{"gateway_session_key":"js:1"},"policy":{"hosts":["edge-host"]}}`)
	sent := a.js("send.mjs", gw, "--to", "js:1")
	if code := sent.exit(60 * time.Second); code != 0 {
		t.Fatalf("send.mjs ended with %d", code)
	}
	type result struct {
		Mode   string
		Status int
		Answer json.RawMessage
	}
	ids := map[events.ReceiptID]bool{}
	for line := range strings.Lines(sent.stdout.String()) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Status != http.StatusOK {
			t.Fatalf("%s: %v", line, err)
		}
		if r.Mode != "batch" {
			var one events.Receipt
			if err := json.Unmarshal(r.Answer, &one); err != nil {
				t.Fatal(err)
			}
			ids[one.ID] = true
			continue
		}
		var all []struct{ Receipt events.Receipt }
		if err := json.Unmarshal(r.Answer, &all); err != nil || len(all) != 3 {
			t.Fatalf("%s: %v", line, err)
		}
		for _, one := range all {
			ids[one.Receipt.ID] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("five events of which three are the same became %d messages", len(ids))
	}
	h := a.js("host.mjs", host, "--lease-ms", "5000")
	settled := func(id events.ReceiptID) string {
		var r events.Receipt
		b.await("message "+string(id)+" to be answered", 40*time.Second, func() bool {
			r = asked[events.Receipt](a, gw, "GET", "/v1/receipts/"+string(id), "")
			return r.State == events.StateSettled
		})
		return asked[events.TurnView](a, gw, "GET", "/v1/turns/"+string(r.Turn), "").Reply
	}
	for id := range ids {
		settled(id)
	}
	if reply := settled(a.say(gw, "js:1", "hello").ID); reply != "HELLO" {
		t.Errorf("the reply is %q", reply)
	}
	bus.kill()
	b.serving()
	if reply := settled(a.say(gw, "js:1", "again").ID); reply != "AGAIN" {
		t.Errorf("after the bus was killed the reply is %q", reply)
	}
	if n := strings.Count(h.stdout.String(), "\n"); n != 5 {
		t.Errorf("the host ran %d turns of 5 messages:\n%s", n, h.stdout)
	}
}

// TestAHostOverHTTPKeepsItsSessionWhenTheBusAndItsEdgeBeginAnew kills both in one process:
// the host begins again and goes on under the same fence.
func TestAHostOverHTTPKeepsItsSessionWhenTheBusAndItsEdgeBeginAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := []string{"up", "--dir", b.store(), "--api", freeAddr(t)}
	bus, _ := b.startOpen(nil, "bus", args...)
	a := b.apiOf(bus, b.store())
	gw, host := a.token("web", events.RoleGateway), a.token("agent", events.RoleHost)
	asked[events.Registered](a, gw, "POST", "/v1/sessions", `{"names":{"gateway_session_key":"js:1"},"policy":{"hosts":["edge-host"]}}`)
	a.js("host.mjs", host)
	answered := func(text, want string) {
		t.Helper()
		id := a.say(gw, "js:1", text).ID
		b.await("an answer to "+text, 40*time.Second, func() bool {
			r := asked[events.Receipt](a, gw, "GET", "/v1/receipts/"+string(id), "")
			return r.State == events.StateSettled && asked[events.TurnView](a, gw, "GET", "/v1/turns/"+string(r.Turn), "").Reply == want
		})
	}
	answered("one", "ONE")
	bus.kill()
	b.startOpen(nil, "bus", args...)
	answered("two", "TWO")
	record := b.run("bus", "replay", "js:1", "--dir", b.store())
	if n := strings.Count(record, "session.attached"); n != 1 || strings.Contains(record, "session.detached") {
		t.Errorf("the session was attached %d times:\n%s", n, record)
	}
}

// TestTheOpenAPIDocumentIsValid asks a validator of others.
func TestTheOpenAPIDocumentIsValid(t *testing.T) {
	t.Parallel()
	a := &api{b: &bench{t: t, dir: t.TempDir()}}
	if err := os.WriteFile(filepath.Join(a.b.dir, "none"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fetch := exec.Command("../../tools/fetch-test-tools", "js-http")
	fetch.Stderr = os.Stderr
	if err := fetch.Run(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "node", "../../integrations/js-http/check.mjs", "../../schemas/openapi.yaml").CombinedOutput()
	if err != nil || string(out) != "OpenAPI 3.1\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// ordinals reads what watch.mjs prints and refuses a gap or a repeat.
func ordinals(t *testing.T, p *process) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(p.stdout.String()) {
		var seq, ordinal int
		var typ string
		if _, err := fmt.Sscan(line, &seq, &ordinal, &typ); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if n++; ordinal != n {
			t.Fatalf("ordinal %d came, want %d:\n%s", ordinal, n, p.stdout)
		}
	}
	return n
}

// TestAStreamGoesOnWithoutGapOrRepeatOverARestart watches a session of a bus that ends and
// begins anew, with its edge in the same process and in one of its own.
func TestAStreamGoesOnWithoutGapOrRepeatOverARestart(t *testing.T) {
	t.Parallel()
	t.Run("with an edge in the same process", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		args := []string{"up", "--dir", b.store(), "--api", freeAddr(t)}
		bus, _ := b.startOpen(nil, "bus", args...)
		a := b.apiOf(bus, b.store())
		watchOver(t, a, func() {
			bus.kill()
			b.startOpen(nil, "bus", args...)
		})
	})
	t.Run("with an edge of its own", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		bus, a := b.bridged()
		watchOver(t, a, func() {
			bus.kill()
			b.serving()
		})
	})
}

func watchOver(t *testing.T, a *api, restart func()) {
	t.Helper()
	gw, eye := a.token("web", events.RoleGateway), a.token("eye", events.RoleObserver)
	asked[events.Registered](a, gw, "POST", "/v1/sessions", `{"names":{"gateway_session_key":"w:1"},"policy":{}}`)
	watch := a.js("watch.mjs", eye, "--session", "w:1")
	last := func() events.Sequence {
		return asked[events.SessionView](a, gw, "GET", "/v1/sessions/w:1", "").LastSeq
	}
	seen := func() {
		t.Helper()
		a.b.await("the watcher to see the last event", 30*time.Second, func() bool {
			return strings.Contains("\n"+watch.stdout.String(), fmt.Sprintf("\n%s ", last()))
		})
	}
	for range 3 {
		a.say(gw, "w:1", "true")
	}
	seen()
	for range 2 {
		restart()
		for range 3 {
			a.say(gw, "w:1", "true")
		}
		seen()
	}
	if n := ordinals(t, watch); n < 10 {
		t.Errorf("only %d events were watched", n)
	}
}

// TestTheREADMEsExamplesOverHTTPWorkAsWritten runs the lines of its section one by one.
func TestTheREADMEsExamplesOverHTTPWorkAsWritten(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		out, err := exec.Command("../../tools/fetch-test-tools", "curl").CombinedOutput()
		if err != nil {
			t.Fatalf("get curl: %v\n%s", err, out)
		}
	}
	b := newBench(t)
	env := []string{"HOME=" + b.dir, "XDG_STATE_HOME=", "PATH=" + binaries + string(os.PathListSeparator) + os.Getenv("PATH")}
	bus, _ := b.startOpen(env, "bus", "up")
	b.apiOf(bus, "")
	shell := exec.CommandContext(t.Context(), "bash", "-eu")
	shell.Dir, shell.Env = b.dir, append(os.Environ(), env...)
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &lockedBuffer{}
	shell.Stdout, shell.Stderr = out, out
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		if err := shell.Wait(); err != nil {
			t.Errorf("the examples ended with %v:\n%s", err, out)
		}
	}()
	wants := httpExamples(t)
	for i, example := range wants {
		line := example.line
		if example.endless { // what a person ends with Ctrl-C ends by itself here
			line = "timeout -s INT 2 " + line + " || [ $? = 124 ]"
		}
		if _, err := fmt.Fprintf(in, "%s\necho; echo done-%d\n", line, i); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b.await(example.line, 20*time.Second, func() bool { return strings.Contains(out.String(), fmt.Sprintf("done-%d\n", i)) })
		_, said, _ := strings.Cut(out.String(), fmt.Sprintf("done-%d\n", i-1))
		if example.want != "" && !strings.Contains(said, example.want) {
			t.Errorf("%s\nsaid %s\nwant %q", example.line, said, example.want)
		}
	}
}

// httpExample is a line of the README with what its answer must have: the words of the
// comment behind it in quotes.
type httpExample struct {
	line, want string
	endless    bool
}

func httpExamples(t *testing.T) []httpExample {
	t.Helper()
	f, err := os.Open("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []httpExample
	section := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "## ") {
			section = line == "## Over HTTP"
		}
		line, code := strings.CutPrefix(line, "    ")
		if !section || !code || strings.TrimSpace(line) == "" {
			continue
		}
		if n := len(out); n > 0 && strings.HasSuffix(out[n-1].line, "\\") {
			out[n-1].line = strings.TrimSuffix(out[n-1].line, "\\") + strings.TrimSpace(line)
			continue
		}
		e := httpExample{line: line, endless: strings.Contains(line, "text/event-stream")}
		for marker, want := range map[string]string{
			"/messages": `"state":"queued"`, "/turns": `"turns":[`, "/status": `"keryx.state"`, "/events?": `"state":"queued"`,
			"text/event-stream": "keryx.session.registered.v1", `{"names": `: `"created":true`, `"$api/v1/sessions"`: `"web:me"`,
		} {
			if strings.Contains(line, marker) {
				e.want = want
			}
		}
		out = append(out, e)
	}
	if len(out) < 8 {
		t.Fatalf("the README has %d lines about HTTP", len(out))
	}
	return out
}
