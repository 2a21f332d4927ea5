package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/replay"
	"keryx/internal/termtext"
)

// story is a session's record: a turn, a failed one, a reset, over midnight.
func story(t testing.TB) []events.Record {
	t.Helper()
	at := time.Date(2026, 12, 1, 23, 59, 58, 0, time.UTC)
	var out []events.Record
	add := func(after time.Duration, typ events.Type, who events.PrincipalName, data any) {
		at = at.Add(after)
		out = append(out, record(t, events.Ordinal(len(out)+1), typ, who, at, data))
	}
	item := func(text string) events.ContinuationQueued {
		return events.ContinuationQueued{Item: events.Item{Receipt: "R", Kind: events.ItemUser, Body: events.Body{Text: text}}}
	}
	const bus = events.AuthorityName
	add(0, events.TypeSessionRegistered, "cli", events.SessionRegistered{
		Names: events.Names{GatewaySessionKey: "cli:local", Source: "stdio"}, Policy: events.Policy{Hosts: []events.PrincipalName{"shell"}},
	})
	add(time.Millisecond, events.TypeContinuationQueued, "cli", item("echo hello"))
	add(time.Millisecond, events.TypeSessionAttached, "shell", events.SessionAttached{
		Host: "shell", LeaseTTLMS: 15000, Capabilities: []events.Capability{events.CapInterrupt},
	})
	add(time.Millisecond, events.TypeContinuationOffered, bus, events.ContinuationOffered{Items: []events.ReceiptID{"R"}, Host: "shell", DeadlineMS: 5000})
	add(time.Millisecond, events.TypeSessionStarted, bus, events.SessionStarted{Host: "shell"})
	add(time.Millisecond, events.TypeTurnStarted, "shell", events.TurnStarted{Turn: "T1", Items: []events.ReceiptID{"R"}, Host: "shell"})
	add(time.Millisecond, events.TypeExecRequested, "shell", events.ExecRequested{
		Exec: "E1", Selection: events.Selection{Target: "local"}, Spec: events.ExecSpec{Argv: []string{"/bin/sh", "-c", "echo hello"}},
	})
	add(3*time.Millisecond, events.TypeExecStarted, "local", events.ExecStarted{Exec: "E1", PID: 4711})
	add(900*time.Millisecond, events.TypeExecExited, "local", events.ExecExited{
		Exec: "E1", DurationMS: 903, Streams: []events.StreamSummary{{Name: "stdout", Bytes: 6}}, Cleanup: events.CleanupSwept,
	})
	add(time.Millisecond, events.TypeTurnEnded, "shell", events.TurnEnded{Turn: "T1", Outcome: events.OutcomeCompleted, Reply: "hello\n"})
	add(time.Millisecond, events.TypeSessionIdle, bus, events.SessionIdle{Turn: "T1", Reason: events.OutcomeCompleted})
	add(2*time.Second, events.TypeContinuationQueued, "cli", item("printf 'a\\nb\x1b[2J'; exit 3 # and a very long comment that no narrow terminal has room for"))
	add(time.Millisecond, events.TypeTurnStarted, "shell", events.TurnStarted{Turn: "T2", Items: []events.ReceiptID{"R"}, Host: "shell"})
	add(time.Minute+500*time.Millisecond, events.TypeTurnEnded, "shell", events.TurnEnded{
		Turn: "T2", Outcome: events.OutcomeFailed, Error: "exit 3", Reply: "a\nb\x1b[2J", Pending: 1,
	})
	add(time.Second, events.TypeSessionFinalized, "cli", events.SessionFinalized{Reason: "/new", Reset: true})
	add(0, events.TypeSessionReset, "cli", events.SessionReset{Reason: "/new", Carry: events.Carry{Items: make([]events.Item, 2)}})
	return out
}

func written(t testing.TB, o replay.Options, rs ...events.Record) string {
	t.Helper()
	var b bytes.Buffer
	w := replay.NewWriter(&b, o)
	for _, r := range rs {
		if err := w.Record(r); err != nil {
			t.Fatalf("write: %v", err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatalf("flush: %v", err)
	}
	return b.String()
}

func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatalf("write golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestAWholeReplayReadsLikeThis(t *testing.T) {
	t.Parallel()
	golden(t, "replay.txt", written(t, replay.Options{}, story(t)...))
}

func TestANarrowTerminalCutsEachLine(t *testing.T) {
	t.Parallel()
	got := written(t, replay.Options{Width: 72}, story(t)...)
	golden(t, "replay-72.txt", got)
	for line := range strings.Lines(got) {
		if n := termtext.Width(strings.TrimSuffix(line, "\n")); n > 72 {
			t.Errorf("a line takes %d cells: %s", n, line)
		}
	}
}

func TestColorsChangeNothingElse(t *testing.T) {
	t.Parallel()
	colored := written(t, replay.Options{Color: true, Width: 100}, story(t)...)
	golden(t, "replay-color.txt", colored)
	for _, seq := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"} {
		colored = strings.ReplaceAll(colored, seq, "")
	}
	if diff := cmp.Diff(written(t, replay.Options{Width: 100}, story(t)...), colored); diff != "" {
		t.Errorf("without its colors the text differs:\n%s", diff)
	}
}

func TestTimesAreShownInTheAskedZone(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("EAT", 3*60*60)
	got := written(t, replay.Options{Location: zone}, story(t)[0])
	if !strings.HasPrefix(got, "-- 2026-12-02 EAT\n02:59:58.000 ") {
		t.Errorf("got %s", got)
	}
}

func TestJSONIsOneStructuredEventALine(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := replay.NewJSONWriter(&b)
	rs := story(t)
	rs[0].Event.DataEncoded = []byte(`{"big": 123456789012345678901234567890, "b":1,"a":2}`)
	for _, r := range rs {
		if err := w.Record(r); err != nil {
			t.Fatalf("write: %v", err)
		}
	}
	if err := errors.Join(
		w.Hole(events.Record{Scope: "S", Sequence: 9, Ordinal: 4}, errors.New("broken")),
		w.Gap("S", 2, 3), w.Flush()); err != nil {
		t.Fatalf("write: %v", err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(rs)+2 {
		t.Fatalf("%d lines for %d events, a hole and a gap", len(lines), len(rs))
	}
	if !strings.Contains(lines[0], `"data":{"big": 123456789012345678901234567890, "b":1,"a":2}`) {
		t.Errorf("the payload's bytes changed: %s", lines[0])
	}
	for i, line := range lines[:len(rs)] {
		var head struct{ Sequence, Ordinal, Type, Specversion string }
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if head.Sequence != rs[i].Sequence.String() || head.Ordinal != rs[i].Ordinal.String() || head.Specversion != "1.0" {
			t.Errorf("line %d has %+v", i, head)
		}
	}
	want := []string{
		`{"hole":{"scope":"S","sequence":9,"ordinal":4,"error":"broken"}}`,
		`{"gap":{"scope":"S","from_ordinal":2,"to_ordinal":3}}`,
	}
	if diff := cmp.Diff(want, lines[len(rs):]); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}
