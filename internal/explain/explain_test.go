package explain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/explain"
)

func fact(t testing.TB, n events.Ordinal, typ events.Type, cause events.CommandID, data any) events.Record {
	t.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return events.Record{Ordinal: n, Sequence: events.Sequence(10 * n), Type: typ, Causation: cause, Data: b}
}

// story is a session in which a message becomes a turn that runs an exec in the background,
// whose end is told; a second message waits.
func story(t testing.TB) []events.Record {
	t.Helper()
	receipts := func(ids ...events.ReceiptID) []events.ReceiptID { return ids }
	return []events.Record{
		fact(t, 1, events.TypeSessionRegistered, "c1", events.SessionRegistered{Owner: "gw"}),
		fact(t, 2, events.TypeContinuationQueued, "c2", events.ContinuationQueued{Item: events.Item{Receipt: "R1", Kind: events.ItemUser}}),
		fact(t, 3, events.TypeContinuationQueued, "c3", events.ContinuationQueued{Item: events.Item{Receipt: "R2", Kind: events.ItemUser}}),
		fact(t, 4, events.TypeSessionAttached, "c4", events.SessionAttached{Host: "h"}),
		fact(t, 5, events.TypeContinuationOffered, "", events.ContinuationOffered{Offer: "O1", Items: receipts("R1"), Host: "h"}),
		fact(t, 6, events.TypeSessionStarted, "", events.SessionStarted{Host: "h"}),
		fact(t, 7, events.TypeTurnStarted, "c5", events.TurnStarted{Turn: "T1", Offer: "O1", Items: receipts("R1"), Host: "h"}),
		fact(t, 8, events.TypeExecRequested, "c6", events.ExecRequested{Exec: "E1", Turn: "T1"}),
		fact(t, 9, events.TypeExecStarted, "c7", events.ExecStarted{Exec: "E1"}),
		fact(t, 10, events.TypeTurnEnded, "c8", events.TurnEnded{Turn: "T1", Outcome: events.OutcomeCompleted, Settled: receipts("R1")}),
		fact(t, 11, events.TypeSessionIdle, "", events.SessionIdle{Turn: "T1"}),
		fact(t, 12, events.TypeExecExited, "c9", events.ExecExited{Exec: "E1"}),
		fact(t, 13, events.TypeContinuationQueued, "", events.ContinuationQueued{Item: events.Item{Receipt: "R3", Kind: events.ItemJobExit, IdempotencyKey: "exec:E1"}}),
		fact(t, 14, events.TypeSessionDetached, "c10", events.SessionDetached{Host: "h"}),
	}
}

func TestTheTreeSaysWhatCameOfWhat(t *testing.T) {
	t.Parallel()
	var tree explain.Tree
	var got []string
	for _, r := range story(t) {
		if p := tree.Parent(r); p != 0 {
			got = append(got, fmt.Sprintf("%d<%d", p, r.Ordinal))
		}
	}
	want := "2<5 5<7 7<8 8<9 7<10 10<11 8<12 12<13 4<14"
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothingComesOfWhatIsLater draws records of any events that name few things.
func TestNothingComesOfWhatIsLater(t *testing.T) {
	t.Parallel()
	types := []events.Type{
		events.TypeContinuationQueued, events.TypeContinuationOffered, events.TypeTurnStarted, events.TypeTurnEnded, events.TypeSessionIdle,
		events.TypeExecRequested, events.TypeExecExited, events.TypeSessionDetached, events.TypeSessionAttached, "keryx.moon.risen.v9",
	}
	rapid.Check(t, func(t *rapid.T) {
		var tree explain.Tree
		id := rapid.SampledFrom([]string{"A", "B", ""})
		for n := events.Ordinal(1); n < 40; n++ {
			body := fmt.Sprintf(`{"turn":%q,"offer":%q,"exec":%q,"items":[%q],"item":{"receipt":%q,"kind":"job_exit","idempotency_key":"exec:A"}}`,
				id.Draw(t, "turn"), id.Draw(t, "offer"), id.Draw(t, "exec"), id.Draw(t, "item"), id.Draw(t, "receipt"))
			if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
				body = `["not an object"]`
			}
			r := events.Record{Ordinal: n, Type: rapid.SampledFrom(types).Draw(t, "type"), Causation: events.CommandID(id.Draw(t, "cause")), Data: []byte(body)}
			if p := tree.Parent(r); p >= n {
				t.Fatalf("event %d came of %d", n, p)
			}
		}
	})
}

func TestATraceKeepsTheFactsThatLedThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind events.FoundKind
		id   string
		want string
	}{
		{"a message, until its turn has ended", events.FoundReceipt, "R1", "2 5 7 10"},
		{"a message that waits", events.FoundReceipt, "R2", "3"},
		{"a turn, from the message on", events.FoundTurn, "T1", "2 5 7 8 10 11"},
		{"an exec, until its end was told", events.FoundExec, "E1", "7 8 9 10 12 13"},
		{"a session as it stands", events.FoundSessionKind, "S", "1 3 4 5 7 10 11 13 14"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			trace := explain.New(c.kind, c.id)
			for _, r := range story(t) {
				trace.Tell(r)
			}
			var got []string
			for _, r := range trace.Facts() {
				got = append(got, r.Ordinal.String())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactsAreBounded(t *testing.T) {
	t.Parallel()
	trace := explain.New(events.FoundReceipt, "R")
	for n := events.Ordinal(1); n <= 1000; n++ {
		trace.Tell(fact(t, n, events.TypeContinuationHeld, "", events.ContinuationHeld{Items: []events.ReceiptID{"R"}}))
	}
	facts := trace.Facts()
	if len(facts) != 200 || facts[0].Ordinal != 1 || facts[199].Ordinal != 1000 {
		t.Errorf("%d facts from %d to %d", len(facts), facts[0].Ordinal, facts[len(facts)-1].Ordinal)
	}
}

func TestStandingSaysWhatWouldMoveItOn(t *testing.T) {
	t.Parallel()
	turn := &events.TurnView{Turn: "T", Session: "S", Host: "h", State: events.TurnRunning}
	waiting := events.SessionView{
		SessionSummary: events.SessionSummary{Session: "S", Pending: 2, WaitingFor: "a host to attach", WantedHosts: []events.PrincipalName{"a", "b"}},
		Queue:          []events.ItemView{{Receipt: "R1", State: events.StateQueued}, {Receipt: "R2", State: events.StateQueued}},
	}
	running := events.SessionView{
		SessionSummary: events.SessionSummary{Session: "S", WaitingFor: "turn T to end"}, Running: turn,
		Execs: []events.ExecView{{Exec: "E", Executor: "x", Target: "t", Started: true, PID: 7}, {Exec: "E2", Executor: "x", Target: "t"}},
	}
	for _, c := range []struct {
		name  string
		got   explain.Standing
		waits string
		says  string
	}{
		{"a session without a host", explain.Session(waiting), "a host to attach", "start a or b"},
		{"a session with a turn", explain.Session(running), "turn T to end", "--mode interrupt"},
		{"a session at rest", explain.Session(events.SessionView{}), "nothing", ""},
		{"one that has ended", explain.Session(events.SessionView{SessionSummary: events.SessionSummary{Session: "S", Status: events.StatusFinalized}}), "", "bus submit S"},
		{"a message behind another", explain.Receipt(events.Receipt{ID: "R2", State: events.StateQueued}, waiting), "1 before it", "bus cancel R2"},
		{"a message in a turn", explain.Receipt(events.Receipt{ID: "R", State: events.StateAccepted, Turn: "T"}, running), "turn T to end", "bus turn T"},
		{"a message of which nobody knows", explain.Receipt(events.Receipt{ID: "R", State: events.StateUnresolved}, waiting), "whether it ran", "bus requeue R"},
		{"a message that is settled", explain.Receipt(events.Receipt{ID: "R", State: events.StateSettled}, waiting), "", ""},
		{"a turn that runs", explain.Turn(*turn), "h to end it", "interrupt"},
		{"a turn that has ended", explain.Turn(events.TurnView{State: events.TurnEndedState, Outcome: events.OutcomeLost}), "", ""},
		{"an exec that runs", explain.Exec("E", running), "process 7", "bus kill S E"},
		{"an exec that was only asked for", explain.Exec("E2", running), "x to start it", "bus leases"},
		{"an exec that has ended", explain.Exec("E3", running), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			says := strings.Join(c.got.Unblock, "; ")
			if !strings.Contains(c.got.WaitsFor, c.waits) || c.waits == "" && c.got.WaitsFor != "" || !strings.Contains(says, c.says) || c.says == "" && says != "" {
				t.Errorf("%+v, want %q and %q", c.got, c.waits, c.says)
			}
		})
	}
}
