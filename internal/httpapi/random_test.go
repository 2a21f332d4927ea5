package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"keryx/events"
	"keryx/internal/httpapi"
)

// runsFor is how many random requests are made: enough to meet each route some times;
// more if KERYX_TEST_RUNS says so.
func runsFor(t testing.TB, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("KERYX_TEST_RUNS"))
	if err != nil {
		return usual
	}
	return max(n, usual)
}

// known are ids that a bus has, so that requests get past the look-up of them.
type known struct {
	byName map[string][]string
}

// TestRandomRequestsNeverFailInside draws requests from the OpenAPI document: fitting ones,
// and some bent out of shape. None may give a fault of the server, and what is answered
// must be what the document says.
func TestRandomRequestsNeverFailInside(t *testing.T) {
	t.Parallel()
	e := startEdge(t, func(c *httpapi.Config) { c.RequestTime = 5 * time.Second })
	ops := operations(t)
	slices.SortFunc(ops, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	k := e.populate()
	compiled := make(map[string]*jsonschema.Schema)
	for _, op := range ops {
		compiled[op.id] = compile(t, op.id, op.answer)
	}
	answered, statuses := make(map[string]int), make(map[int]int)
	each := runsFor(t, 1200) / 100 // rapid checks a hundred times
	rapid.Check(t, func(t *rapid.T) {
		for range each {
			op := rapid.SampledFrom(ops).Draw(t, "operation")
			r := draw(t, op, k)
			a := e.send(e.request(op.method, r.target, e.secrets[r.role], r.body, r.header...))
			statuses[a.status]++
			if err := checkAnswer(op, compiled[op.id], a); err != nil {
				t.Fatalf("%s %s %s as %s: %v\n%d %s", op.method, r.target, r.body, r.role, err, a.status, a.body)
			}
			if a.status == http.StatusOK {
				answered[op.id]++
				k.learn(a.body)
			}
		}
	})
	t.Logf("%d of %d operations were answered; by status: %v", len(answered), len(ops), statuses)
	if len(answered) < len(ops)*2/5 { // some need an executor, or a turn that runs
		t.Errorf("only %d of %d operations were ever answered: %v", len(answered), len(ops), answered)
	}
}

// populate makes a session with something of everything.
func (e *edge) populate() *known {
	e.t.Helper()
	id := e.register("k:1", "edge-host")
	r := e.submit("k:1", "hello")
	instance := events.NewID()
	a := e.attach(id, events.Instance(instance), "")
	do[events.PackageRefs](e, events.RoleOperator, "POST", "/v1/packages", tool(e.t, "nowhere"))
	return &known{byName: map[string][]string{
		"package": {"Tool"}, "packages": {"Tool"},
		"to": {"k:1", string(id)}, "session": {string(id)}, "receipt": {string(r.ID)}, "id": {string(r.ID)},
		"instance": {instance}, "fence": {a.Fence.String()}, "key": {"default.account.bot", "default.session." + string(id)},
		"name": {"local"},
	}}
}

// learn remembers ids of answers for later requests.
func (k *known) learn(body []byte) {
	var a map[string]any
	if json.Unmarshal(body, &a) != nil {
		return
	}
	for _, name := range []string{"session", "turn", "offer", "exec", "fence"} {
		if s, ok := a[name].(string); ok && s != "" && len(k.byName[name]) < 8 {
			k.byName[name] = append(k.byName[name], s)
		}
	}
}

// checkAnswer returns what about an answer is not as the document says.
func checkAnswer(op operation, schema *jsonschema.Schema, a answer) error {
	switch {
	case a.status == http.StatusGatewayTimeout && op.method == http.MethodGet:
		return errors.New("a read took too long")
	case a.status >= 500 && a.status != http.StatusNotImplemented && a.status != http.StatusGatewayTimeout:
		return errors.New("the server failed")
	case a.status >= 400 && a.header.Get("Content-Type") != "application/problem+json":
		return errors.New("no problem document")
	case a.status == http.StatusOK:
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	return nil
}

func compile(t *testing.T, id string, s map[string]any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	b, err := json.Marshal(withoutIDs(s))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("urn:test:"+id, doc); err != nil {
		t.Fatal(err)
	}
	out, err := c.Compile("urn:test:" + id)
	if err != nil {
		t.Fatalf("the schema of %s: %v", id, err)
	}
	return out
}

// withoutIDs takes out the names of schemas that were put in place of references.
func withoutIDs(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if text, ok := x.(string); ok && (k == "$id" || k == "$schema") && text != "" {
				continue
			}
			out[k] = withoutIDs(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = withoutIDs(x)
		}
		return out
	}
	return v
}

// drawn is a request that was drawn.
type drawn struct {
	target, body string
	role         events.Role
	header       []string
}

func draw(t *rapid.T, op operation, k *known) drawn {
	out := drawn{role: rapid.SampledFrom(append(op.roles, events.TokenRoles()...)).Draw(t, "role")}
	path, query := op.path, url.Values{}
	for _, p := range op.parameters {
		switch p.in {
		case "path":
			path = strings.ReplaceAll(path, "{"+p.name+"}", url.PathEscape(notEmpty(text(drawValue(t, p.name, p.schema, k, 0)))))
		case "query":
			if rapid.Bool().Draw(t, "has "+p.name) {
				query.Set(p.name, text(drawValue(t, p.name, p.schema, k, 0)))
			}
		case "header":
			if p.name == "Idempotency-Key" && rapid.Bool().Draw(t, "key") {
				out.header = append(out.header, p.name, rapid.StringMatching(`[a-z]{1,2}`).Draw(t, "the key"))
			}
		}
	}
	if strings.HasSuffix(path, "/orders") {
		query.Set("wait_ms", "0")
	}
	out.target = path
	if len(query) > 0 {
		out.target += "?" + query.Encode()
	}
	if op.method != http.MethodGet {
		out.body = drawBody(t, op, k)
	}
	if op.id == "sendEvents" {
		out.header = append(out.header, "Content-Type", rapid.SampledFrom([]string{
			"application/cloudevents+json", "application/cloudevents-batch+json", "application/json", "text/plain", "", ";;",
		}).Draw(t, "mode"), "Ce-Id", "1", "Ce-Specversion", rapid.SampledFrom([]string{"1.0", "2"}).Draw(t, "version"), "Ce-Type", "x", "Ce-Source", "/%zz")
	}
	return out
}

// notEmpty keeps a path from having an empty part, which is another route.
func notEmpty(s string) string {
	if s == "" || s == "." || s == ".." {
		return "x"
	}
	return s
}

func drawBody(t *rapid.T, op operation, k *known) string {
	if op.body == nil {
		return rapid.SampledFrom([]string{"", "{}", "[]", "[1,{}]", `{"specversion":"1.0","id":"1","source":"/","type":"t","subject":"k:1","data":{"a":1}}`}).Draw(t, "any body")
	}
	b, err := json.Marshal(drawValue(t, "", op.body, k, 0))
	if err != nil {
		t.Fatal(err)
	}
	if rapid.IntRange(0, 19).Draw(t, "cut") == 0 {
		return string(b[:rapid.IntRange(0, len(b)).Draw(t, "at")])
	}
	return string(b)
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) == 0 {
			return ""
		}
		return text(v[0])
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// drawValue draws what fits a schema; once in a while something that does not.
func drawValue(t *rapid.T, name string, s map[string]any, k *known, depth int) any {
	if rapid.IntRange(0, 29).Draw(t, "bent") == 0 {
		return rapid.SampledFrom([]any{nil, "", "\x00", "a/b%2F?#é", -1, 1e300, true, []any{}, map[string]any{"x": 1}, strings.Repeat("y", 5000)}).Draw(t, "bent "+name)
	}
	if ids := k.byName[name]; len(ids) > 0 && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
		return rapid.SampledFrom(ids).Draw(t, "known "+name)
	}
	if e, ok := s["enum"].([]any); ok {
		return rapid.SampledFrom(e).Draw(t, name)
	}
	switch s["type"] {
	case "object":
		return drawObject(t, s, k, depth)
	case "array":
		items, _ := s["items"].(map[string]any)
		out := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "items of "+name) {
			out = append(out, drawValue(t, "", items, k, depth+1))
		}
		return out
	case "integer":
		return drawInteger(t, name, s)
	case "boolean":
		return rapid.Bool().Draw(t, name)
	case "string":
		return drawString(t, name, s)
	}
	return rapid.SampledFrom([]any{"x", 1, map[string]any{"a": []any{1}}}).Draw(t, name)
}

func drawObject(t *rapid.T, s map[string]any, k *known, depth int) any {
	out := map[string]any{}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(required, any(name)) || depth < 3 && rapid.IntRange(0, 3).Draw(t, "has "+name) == 0 {
			out[name] = drawValue(t, name, properties[name].(map[string]any), k, depth+1)
		}
	}
	return out
}

func drawInteger(t *rapid.T, name string, s map[string]any) any {
	bound := func(key string, fallback int64) int64 {
		if n, ok := s[key].(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				return i
			}
		}
		return fallback
	}
	low := bound("minimum", 0)
	return rapid.SampledFrom([]int64{low, low + 1, min(bound("maximum", 1<<53), 1000)}).Draw(t, name)
}

func drawString(t *rapid.T, name string, s map[string]any) any {
	if p, ok := s["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err == nil {
			return rapid.StringMatching(p).Draw(t, name)
		}
	}
	switch {
	case s["format"] == "date-time":
		return "2026-12-01T12:00:00Z"
	case s["contentEncoding"] == "base64":
		return "aGVsbG8="
	}
	return rapid.StringN(1, 12, -1).Draw(t, name)
}
