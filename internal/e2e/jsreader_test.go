package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/client"
	"keryx/events"
	"keryx/schemas"
)

// jsReader gets integrations/js-reader and returns the path of Node.js.
func jsReader(t *testing.T) string {
	t.Helper()
	fetch := exec.Command("../../tools/fetch-test-tools", "js-reader")
	fetch.Stderr = os.Stderr
	if err := fetch.Run(); err != nil {
		t.Fatalf("get Node.js and its packages: %v", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// readLine is what read.mjs prints of an event.
type readLine struct {
	Event map[string]any
	Bytes string
}

// TestTheCloudEventsSDKReadsEventsLive compares what the official SDK and client make of
// each event on the wire with what is on record, attributes and data, also beyond ASCII.
func TestTheCloudEventsSDKReadsEventsLive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run("bus", "user", "add", "watcher", "--role", "observer", "--profile", "default", "--out", b.creds("watcher"), "--dir", b.store())
	b.serving()
	reader := b.startPath(nil, "", jsReader(t), "../../integrations/js-reader/read.mjs", "--url", b.url(), "--creds", b.creds("watcher"))
	b.await("the reader to listen", 30*time.Second, func() bool { return strings.Contains(reader.stderr.String(), "reading as") })

	g := b.gateway()
	const state = "größe=漢字 😀, 100%=%C3%BC \"q\""
	ctx := client.WithTrace(g.within(30*time.Second), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", state)
	session, err := g.Register(ctx, events.Names{GatewaySessionKey: "js:grüße 漢字 😀"}, events.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"<&> \u2028 é e\u0301 \\ \x7f", strings.Repeat("漢", 1000), ""} {
		if _, err := g.Submit(ctx, events.Submit{To: string(session.Session), Body: events.Body{Text: text}}); err != nil {
			t.Fatal(err)
		}
	}
	want := g.recorded(session.Session)
	b.await("the events to come", 20*time.Second, func() bool { return strings.Count(reader.stdout.String(), "\n") >= len(want) })
	got := readLines(t, reader.stdout.String(), session.Session)
	if len(got) != len(want) || len(want) < 4 {
		t.Fatalf("%d events were read, %d are on record", len(got), len(want))
	}
	for i, e := range want {
		sameEvent(t, got[i], e)
	}
	if s, _ := got[0].Event["tracestate"].(string); s != state {
		t.Errorf("an attribute beyond ASCII came as %q", s)
	}
	if code := reader.terminate(); code != 0 {
		t.Errorf("the reader exited %d", code)
	}
}

// recorded reads a session's log.
func (g *gateway) recorded(s events.SessionID) []events.Record {
	g.t.Helper()
	p, err := g.Page(g.within(20*time.Second), s.Scope(), 0, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	if p.Next != 0 || len(p.Holes) > 0 {
		g.t.Fatalf("a page of %d events is not all, or has holes: %v", len(p.Records), p.Holes)
	}
	return p.Records
}

func readLines(t *testing.T, out string, s events.SessionID) []readLine {
	t.Helper()
	var lines []readLine
	for line := range strings.Lines(out) {
		var l readLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if l.Event["subject"] == string(s) {
			lines = append(lines, l)
		}
	}
	return lines
}

// sameEvent compares what was read live with the record. The SDK gives a time in
// milliseconds, and an event on record has a sequence, which the live one has not.
func sameEvent(t *testing.T, got readLine, want events.Record) {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(got.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want.Data), string(data)); d != "" {
		t.Errorf("data of ordinal %d (-record +live):\n%s", want.Ordinal, d)
	}
	doc, err := events.MarshalStructured(*want.Event)
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]any
	if err := json.Unmarshal(doc, &recorded); err != nil {
		t.Fatal(err)
	}
	delete(recorded, "sequence")
	recorded["time"] = want.Event.Time().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
	if d := cmp.Diff(recorded, got.Event); d != "" {
		t.Errorf("ordinal %d (-record +SDK):\n%s", want.Ordinal, d)
	}
}

// TestTheAsyncAPIDocumentIsValid asks the official parser, which follows the references to
// the schemas, and compares what it found with the catalogue.
func TestTheAsyncAPIDocumentIsValid(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	check := exec.CommandContext(t.Context(), jsReader(t), "../../integrations/js-reader/check.mjs", "../../schemas/asyncapi.yaml")
	check.Stderr = &stderr
	out, err := check.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var found struct {
		Version            string
		Messages, Receives []string
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found.Version != "3.0.0" {
		t.Errorf("it is AsyncAPI %s", found.Version)
	}
	for _, name := range schemas.Names() {
		if strings.HasPrefix(name, "keryx.format.") {
			continue // does not travel on the bus
		}
		if !slices.Contains(found.Messages, name) {
			t.Errorf("%s is no message of the document", name)
		}
	}
	for _, e := range events.Catalogue() {
		if id := "cmd." + e.Type.Short(); e.Class == events.ClassCommand && !slices.Contains(found.Receives, id) {
			t.Errorf("the bus does not receive %s by the document", id)
		}
	}
}
