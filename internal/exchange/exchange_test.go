package exchange_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/archive"
	"keryx/internal/bustest"
	"keryx/internal/exchange"
	"keryx/internal/node"
	"keryx/internal/replay"
	"keryx/internal/travel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	session = events.SessionID("01JSESS10N0000000000000000")
	exec    = events.ExecID("01JEXEC0000000000000000000")
	silent  = events.ExecID("01JEXEC1000000000000000000")
)

// bus is a running bus and its operator.
type bus struct {
	dir  string
	node *node.Node
	op   *client.Conn
}

// start serves a directory.
func start(t *testing.T, dir string, profile events.Profile) *bus {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError + 1}))
	n, err := node.Start(t.Context(), node.Config{Dir: dir, Logger: log})
	if err != nil {
		t.Fatalf("start bus: %v", err)
	}
	b := &bus{dir: dir, node: n}
	b.op, err = n.Connect(t.Context(), events.Principal{Profile: profile, Name: "op", Role: events.RoleOperator})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { b.stop(t) })
	return b
}

func (b *bus) stop(t *testing.T) {
	t.Helper()
	if b.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := errors.Join(b.op.Close(), b.node.Stop(ctx)); err != nil {
		t.Errorf("stop bus: %v", err)
	}
	b.node = nil
}

// recorded returns a directory in which a session of n events is on record: a hole among
// them, an exec with output, its chunks stored in disorder and one of them lost.
func recorded(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	b := bustest.Broker(t, bustest.Dir(dir))
	nc := bustest.System(t, b)
	begin := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	// Another session in between, so that sequences are not ordinals.
	bustest.Record(t, nc, "default", "01JSESS10N0000000000000009", 5, func(int) bustest.Fact {
		return bustest.Fact{Type: events.TypeSessionRegistered, At: begin, Data: events.SessionRegistered{Owner: "gw"}}
	})
	bustest.Record(t, nc, "default", session.Scope(), n, func(i int) bustest.Fact {
		f := bustest.Fact{Type: events.TypeContinuationQueued, At: begin.Add(time.Duration(i) * time.Second), Data: events.ContinuationQueued{
			Item: events.Item{Receipt: events.ReceiptID(events.NewID()), Kind: events.ItemUser, Sender: "gw", Body: events.Body{Text: "<&> " + strconv.Itoa(i)}},
		}}
		sel := events.Selection{Target: "local", Executor: "local", Instance: "01JNSTANCE0000000000000000", Generation: 1}
		switch i {
		case 1:
			f.Type, f.Data = events.TypeSessionRegistered, events.SessionRegistered{Owner: "gw", Names: events.Names{GatewaySessionKey: "cli:x"}}
		case 2:
			f.Type, f.Data = events.TypeExecRequested, events.ExecRequested{Exec: exec, Requester: "op", Selection: sel, Spec: events.ExecSpec{Argv: []string{"x"}}}
		case 3:
			f.Type, f.Data = events.TypeExecRequested, events.ExecRequested{Exec: silent, Requester: "op", Selection: sel, Spec: events.ExecSpec{Argv: []string{"y"}}}
		case 4:
			f.Broken = true
		case 5:
			f.Type, f.Data = events.TypeExecExited, events.ExecExited{Exec: exec, Streams: []events.StreamSummary{{Name: "stdout", Bytes: 9, MissingBytes: 3}}}
		}
		return f
	})
	for _, c := range []struct {
		n, offset int
		data      string
	}{{1, 0, "abc"}, {3, 6, "ghi"}, {1, 0, "abc"}} {
		m := nats.NewMsg(events.OutSubject("default", "local", session, exec))
		m.Header.Set(events.HeaderStream, "stdout")
		m.Header.Set(events.HeaderChunk, strconv.Itoa(c.n))
		m.Header.Set(events.HeaderOffset, strconv.Itoa(c.offset))
		m.Header.Set(events.HeaderTime, "1764590400000000")
		m.Data = []byte(c.data)
		if err := nc.PublishMsg(m); err != nil {
			t.Fatalf("store output: %v", err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatalf("store output: %v", err)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Fatalf("stop: %v", err)
	}
	return dir
}

func export(t *testing.T, b *bus, scope events.Scope) (archive.Header, []byte) {
	t.Helper()
	var out bytes.Buffer
	h, err := exchange.Export(t.Context(), b.op, exchange.Job{
		Profile: b.op.Principal().Profile, Scope: scope, Output: true, Software: "test", Now: time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC),
	}, &out)
	if err != nil {
		t.Fatalf("export: %v", err)
	}
	return h, out.Bytes()
}

func bring(ctx context.Context, b *bus, file []byte) (events.SessionImported, error) {
	h, err := exchange.Check(bytes.NewReader(file))
	if err != nil {
		return events.SessionImported{}, err
	}
	return b.op.Import(ctx, h.Session, h.Content.String(), bytes.NewReader(file), nil)
}

// same shows where two long texts begin to differ.
func same(t *testing.T, what, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-200):min(len(s), i+200)] }
	t.Errorf("%s: from byte %d of %d and %d:\n- %s\n+ %s", what, i, len(want), len(got), around(want), around(got))
}

func stateAt(t *testing.T, b *bus, scope events.Scope, m travel.Moment) string {
	t.Helper()
	p, err := travel.To(t.Context(), b.op, b.op.Principal().Profile, scope, m)
	if err != nil {
		t.Fatalf("travel %s to %s: %v", scope, m, err)
	}
	body, err := json.Marshal(p.State.View())
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func replayed(t *testing.T, b *bus, scope events.Scope) string {
	t.Helper()
	var out bytes.Buffer
	if err := replay.Print(t.Context(), b.op, replay.NewJSONWriter(&out), scope, replay.Query{}); err != nil {
		t.Fatalf("replay: %v", err)
	}
	return strings.ReplaceAll(out.String(), "import-", "") // the scope of a hole
}

func output(t *testing.T, b *bus, scope events.Scope) (out []client.Chunk) {
	t.Helper()
	if err := b.op.KeptOutput(t.Context(), scope, exec, func(c client.Chunk) { out = append(out, c) }); err != nil {
		t.Fatalf("output: %v", err)
	}
	return out
}

// TestAnImportedRecordIsTheSameByteForByte exports from one bus and imports into another,
// under another profile; the states at each ordinal, the replay, the output, and a second
// export are the same.
func TestAnImportedRecordIsTheSameByteForByte(t *testing.T) {
	t.Parallel()
	const n = 1100 // more than a page
	here := start(t, recorded(t, n), "default")
	h, file := export(t, here, session.Scope())
	if h.Events != n || h.Chunks != 2 || h.First.Ordinal != 1 || h.Last.Ordinal != n || h.First.Sequence == 1 {
		t.Errorf("header %+v", h)
	}
	there := start(t, t.TempDir(), "other")
	fact, err := bring(t.Context(), there, file)
	if err != nil || fact.FromProfile != "default" || fact.Events != n || fact.Content != h.Content.String() {
		t.Fatalf("import: %+v, %v", fact, err)
	}
	scope := events.ImportScope(session)
	for _, m := range []travel.Moment{{Ordinal: 1}, {Ordinal: 3}, {Ordinal: 5}, {Ordinal: 1000}, {Ordinal: 1001}, {Ordinal: n}, {Sequence: h.Last.Sequence - 7}, {}} {
		same(t, m.String(), stateAt(t, here, session.Scope(), m), stateAt(t, there, scope, m))
	}
	same(t, "replayed", replayed(t, here, session.Scope()), replayed(t, there, scope))
	if diff := cmp.Diff(output(t, here, session.Scope()), output(t, there, scope)); diff != "" {
		t.Errorf("output (-here +there):\n%s", diff)
	}
	again, _ := export(t, there, scope)
	if again.Content != h.Content {
		t.Error("exported again it is something else")
	}
	v, err := there.op.Show(t.Context(), string(session))
	if err != nil {
		t.Fatalf("show: %v", err)
	}
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "shown by the bus", stateAt(t, there, scope, travel.Moment{}), string(body))
}

func TestPagesOfAnImportBeginAnywhere(t *testing.T) {
	t.Parallel()
	const n = 300
	dir := recorded(t, n)
	here := start(t, dir, "default")
	_, file := export(t, here, session.Scope())
	if _, err := bring(t.Context(), here, file); err != nil { // beside the session itself
		t.Fatalf("import: %v", err)
	}
	for from := events.Sequence(0); from < n+20; from += 7 {
		want, err := here.op.Page(t.Context(), session.Scope(), from, 10)
		if err != nil {
			t.Fatal(err)
		}
		got, err := here.op.Page(t.Context(), events.ImportScope(session), from, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Records) != len(want.Records) || got.Next != want.Next || got.Tip.Sequence != want.Tip.Sequence || got.Tip.Ordinal != want.Tip.Ordinal {
			t.Fatalf("from %d: %d records, next %d, tip %v; want %d, %d, %v", from, len(got.Records), got.Next, got.Tip, len(want.Records), want.Next, want.Tip)
		}
		for i := range got.Records {
			if got.Records[i].Sequence != want.Records[i].Sequence || !bytes.Equal(got.Records[i].Data, want.Records[i].Data) {
				t.Fatalf("from %d: record %d is %+v", from, i, got.Records[i])
			}
		}
	}
}

func TestAnImportIsThereWhenItIsCompleteAndNotBefore(t *testing.T) {
	t.Parallel()
	here := start(t, recorded(t, 50), "default")
	h, file := export(t, here, session.Scope())
	dir := t.TempDir()
	there := start(t, dir, "default")
	unseen := func(when string) {
		t.Helper()
		_, err := there.op.Show(t.Context(), string(session))
		_, pageErr := there.op.Page(t.Context(), events.ImportScope(session), 0, 0)
		for _, err := range []error{err, pageErr} {
			if !errors.Is(err, events.ErrOf(events.CodeUnknownSession)) {
				t.Errorf("%s: %v", when, err)
			}
		}
		for f, err := range there.op.Imports(t.Context()) {
			t.Errorf("%s: listed is %v, %v", when, f, err)
		}
	}
	var begun events.ImportState
	begin := func() {
		t.Helper()
		if err := there.op.Do(t.Context(), events.CmdImportBegin, events.BeginImport{Session: session, Content: h.Content.String()}, &begun); err != nil {
			t.Fatalf("begin: %v", err)
		}
	}
	put := func(offset int64, data []byte) (events.ImportState, error) {
		var a events.ImportState
		err := there.op.Do(t.Context(), events.CmdImportPut, events.PutImport{Import: begun.Import, Offset: offset, Data: data}, &a)
		return a, err
	}
	end := func() error {
		return there.op.Do(t.Context(), events.CmdImportEnd, events.EndImport{Import: begun.Import}, nil)
	}
	begin()
	unseen("begun")
	half := int64(len(file) / 2)
	for range 2 { // the same piece again changes nothing
		if a, err := put(0, file[:half]); err != nil || a.Offset != half {
			t.Fatalf("put: %+v, %v", a, err)
		}
	}
	if _, err := put(half+1, file[half+1:]); !errors.Is(err, events.ErrOf(events.CodeInvalid)) {
		t.Errorf("a piece too far on: %v", err)
	}
	unseen("half")
	if err := end(); !errors.Is(err, events.ErrOf(events.CodeInvalid)) || !strings.Contains(err.Error(), "ends early") {
		t.Errorf("ended half way: %v", err)
	}
	unseen("ended half way")

	// The bus ends; what has come is forgotten, and what it left does no harm.
	there.stop(t)
	there = start(t, dir, "default")
	unseen("after a restart")
	if _, err := put(half, file[half:]); !errors.Is(err, events.ErrOf(events.CodeUnknownImport)) {
		t.Errorf("gone on after a restart: %v", err)
	}
	begin()
	damaged := bytes.Clone(file)
	damaged[half] ^= 1
	if _, err := put(0, damaged); !errors.Is(err, events.ErrOf(events.CodeInvalid)) || !strings.Contains(err.Error(), "line ") {
		t.Errorf("a damaged piece: %v", err)
	}
	if err := end(); !errors.Is(err, events.ErrOf(events.CodeInvalid)) {
		t.Errorf("ended after damage: %v", err)
	}
	unseen("damaged")
	if _, err := bring(t.Context(), there, file); err != nil {
		t.Fatalf("import: %v", err)
	}
	same(t, "replayed", replayed(t, here, session.Scope()), replayed(t, there, events.ImportScope(session)))
}

func TestASecondImportIsTheFirstOrRefused(t *testing.T) {
	t.Parallel()
	here := start(t, recorded(t, 20), "default")
	_, file := export(t, here, session.Scope())
	dir := t.TempDir()
	there := start(t, dir, "default")
	first, err := bring(t.Context(), there, file)
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	there.stop(t)
	there = start(t, dir, "default")
	if again, err := bring(t.Context(), there, file); err != nil || again != first {
		t.Errorf("again: %+v, %v; want %+v", again, err, first)
	}
	if _, err := here.op.Submit(t.Context(), events.Submit{To: string(session), Body: events.Body{Text: "more"}}); err != nil {
		t.Fatalf("submit: %v", err)
	}
	_, longer := export(t, here, session.Scope())
	if _, err := bring(t.Context(), there, longer); !errors.Is(err, events.ErrOf(events.CodeAlreadyImported)) {
		t.Errorf("another record of it: %v", err)
	}
	// It is read-only.
	_, err = there.op.Submit(t.Context(), events.Submit{To: string(session), Body: events.Body{Text: "hi"}})
	if !errors.Is(err, events.ErrOf(events.CodeUnknownSession)) {
		t.Errorf("submit to what is imported: %v", err)
	}
	n := 0
	for r, err := range there.op.Follow(t.Context(), client.FollowConfig{Scopes: []events.Scope{events.ImportScope(session)}}) {
		var hole *client.HoleError
		if err != nil && !errors.As(err, &hole) {
			t.Fatalf("follow: %v", err)
		}
		if n++; r.Ordinal == 20 {
			break
		}
	}
	if n != 20 {
		t.Errorf("followed are %d events", n)
	}
}

func TestOnlyAnOperatorImports(t *testing.T) {
	t.Parallel()
	there := start(t, t.TempDir(), "default")
	for _, role := range []events.Role{events.RoleGateway, events.RoleHost, events.RoleExecutor, events.RoleObserver} {
		c, err := there.node.Connect(t.Context(), events.Principal{Profile: "default", Name: events.PrincipalName("p-" + role), Role: role})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Import(t.Context(), session, strings.Repeat("0", 64), strings.NewReader("x"), nil)
		if !errors.Is(err, events.ErrOf(events.CodeForbidden)) {
			t.Errorf("%s: %v", role, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

var _ exchange.Source = (*client.Conn)(nil)
