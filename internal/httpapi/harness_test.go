package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/httpapi"
	"keryx/internal/node"
	"keryx/internal/tokens"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const profile = events.Profile("default")

// edge is a bus with an HTTP edge.
type edge struct {
	t        testing.TB
	node     *node.Node
	server   *httpapi.Server
	url      string
	operator *client.Conn
	client   *http.Client
	secrets  map[events.Role]string
}

func startEdge(t testing.TB, change ...func(*httpapi.Config)) *edge {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	e := &edge{t: t, secrets: make(map[events.Role]string), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	n, err := node.Start(t.Context(), node.Config{Dir: t.TempDir(), Logger: log, AuthorityTTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	e.node = n
	t.Cleanup(func() { stopNode(t, n) })
	e.operator = e.connect("boss", events.RoleOperator)
	cfg := httpapi.Config{Addr: "127.0.0.1:0", Logger: log, Conns: map[events.Role]*client.Conn{
		events.RoleGateway:  e.connect("edge", events.RoleGateway),
		events.RoleHost:     e.connect("edge-host", events.RoleHost),
		events.RoleOperator: e.connect("edge-operator", events.RoleOperator),
	}}
	for _, f := range change {
		f(&cfg)
	}
	e.server, err = httpapi.Serve(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.url = e.server.URL()
	t.Cleanup(func() { e.stopServer(); e.client.CloseIdleConnections() })
	await(t, "the edge to be ready", func() bool { return e.server.Ready() == nil })
	for _, role := range events.TokenRoles() {
		e.secrets[role] = e.token(events.TokenName("t-"+string(role)), role, 0)
	}
	return e
}

func stopNode(t testing.TB, n *node.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Errorf("stop bus: %v", err)
	}
}

func (e *edge) stopServer() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.server.Stop(ctx); err != nil {
		e.t.Errorf("stop edge: %v", err)
	}
}

func (e *edge) connect(name events.PrincipalName, role events.Role) *client.Conn {
	e.t.Helper()
	c, err := e.node.ConnectForOthers(e.t.Context(), events.Principal{Profile: profile, Name: name, Role: role})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			e.t.Errorf("close %s: %v", name, err)
		}
	})
	return c
}

// token adds a token and returns its secret.
func (e *edge) token(name events.TokenName, role events.Role, ttl time.Duration) string {
	e.t.Helper()
	secret := tokens.NewSecret()
	_, err := e.operator.AddToken(e.t.Context(), events.AddToken{Name: name, Role: role, Digest: tokens.Digest(secret), TTLMS: ttl.Milliseconds()})
	if err != nil {
		e.t.Fatal(err)
	}
	return secret
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) code() events.Code {
	var p struct{ Code events.Code }
	if json.Unmarshal(a.body, &p) != nil {
		return ""
	}
	return p.Code
}

func (e *edge) request(method, path, secret, body string, header ...string) *http.Request {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, e.url+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func (e *edge) send(r *http.Request) answer {
	e.t.Helper()
	resp, err := e.client.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b}
}

// do sends a request that must be answered 200 and decodes the answer.
func do[A any](e *edge, role events.Role, method, path, body string, header ...string) A {
	e.t.Helper()
	a := e.send(e.request(method, path, e.secrets[role], body, header...))
	if a.status != http.StatusOK {
		e.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	var out A
	if err := json.Unmarshal(a.body, &out); err != nil {
		e.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
	}
	return out
}

// refused sends a request that must be refused with a code.
func (e *edge) refused(role events.Role, want events.Code, method, path, body string, header ...string) answer {
	e.t.Helper()
	a := e.send(e.request(method, path, e.secrets[role], body, header...))
	info, _ := events.Lookup(want)
	if a.code() != want || a.status != info.HTTPStatus || a.header.Get("Content-Type") != "application/problem+json" {
		e.t.Errorf("%s %s: %d %s, want %s", method, path, a.status, a.body, want)
	}
	return a
}

// register makes a session by its key.
func (e *edge) register(key string, hosts ...string) events.SessionID {
	e.t.Helper()
	policy, err := json.Marshal(map[string]any{"hosts": hosts})
	if err != nil {
		e.t.Fatal(err)
	}
	if len(hosts) == 0 {
		policy = []byte("{}")
	}
	return do[events.Registered](e, events.RoleGateway, "POST", "/v1/sessions", `{"names":{"gateway_session_key":"`+key+`"},"policy":`+string(policy)+`}`).Session
}

func (e *edge) submit(to, text string) events.Receipt {
	e.t.Helper()
	body, err := json.Marshal(map[string]any{"body": map[string]string{"text": text}})
	if err != nil {
		e.t.Fatal(err)
	}
	return do[events.Receipt](e, events.RoleGateway, "POST", "/v1/sessions/"+to+"/messages", string(body))
}

// sse is an open stream of server-sent events.
type sse struct {
	t      testing.TB
	body   io.ReadCloser
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// event is one event of a stream.
type event struct {
	id, name, data string
}

func (e *edge) stream(role events.Role, path string, header ...string) *sse {
	e.t.Helper()
	return e.streamBy(e.secrets[role], path, header...)
}

func (e *edge) streamBy(secret, path string, header ...string) *sse {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	r := e.request("GET", path, secret, "", append([]string{"Accept", "text/event-stream"}, header...)...).WithContext(ctx)
	resp, err := e.client.Do(r)
	if err != nil {
		cancel()
		e.t.Fatal(err)
	}
	s := &sse{e.t, resp.Body, bufio.NewReader(resp.Body), cancel}
	e.t.Cleanup(s.close)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		e.t.Fatalf("stream %s: %d %s", path, resp.StatusCode, b)
	}
	return s
}

func (s *sse) close() {
	s.cancel()
	_ = s.body.Close()
}

// next returns the next event; the stream must have one within ten seconds.
func (s *sse) next() event {
	s.t.Helper()
	e, err := s.read()
	if err != nil {
		s.t.Fatalf("the stream ended: %v", err)
	}
	return e
}

func (s *sse) read() (event, error) {
	timer := time.AfterFunc(10*time.Second, s.cancel)
	defer timer.Stop()
	var e event
	var data []string
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
		case line == "\n" && (data != nil || e.name != ""):
			e.data = strings.Join(data, "\n")
			return e, nil
		case field == "id":
			e.id = value
		case field == "event":
			e.name = value
		case field == "data":
			data = append(data, value)
		}
	}
}

// until reads events until one is of a type, and returns all.
func (s *sse) until(typ string) []event {
	s.t.Helper()
	var out []event
	for {
		e := s.next()
		out = append(out, e)
		if e.typ() == typ || e.name == typ {
			return out
		}
	}
}

// typ is the short type of a streamed event of the record.
func (e event) typ() string {
	var c struct{ Type events.Type }
	if json.Unmarshal([]byte(e.data), &c) != nil || c.Type == "" {
		return ""
	}
	return c.Type.Short()
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

func unmarshal[A any](t testing.TB, data string) A {
	t.Helper()
	var out A
	if err := json.NewDecoder(bytes.NewReader([]byte(data))).Decode(&out); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return out
}
