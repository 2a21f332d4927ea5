package authority_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/client"
	"keryx/events"
	"keryx/internal/authority"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

// await polls until ok or ten seconds have passed.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(10 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

func TestALogIsCutWhereAnEpochBeginsAndTheSessionIsAsBefore(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	s := stand(t, b, func(*authority.Config) {})
	awaitActive(t, s, 5*time.Second)
	gw := connectTo(t, b, "gw", events.RoleGateway)
	hosts := events.Policy{Hosts: []events.PrincipalName{"nobody"}}
	id, single := register(t, gw, "k:1", hosts), register(t, gw, "k:2", hosts)
	submit(t, gw, "k:1", "of the first epoch")
	if _, err := gw.Reset(t.Context(), "k:1", "another topic"); err != nil {
		t.Fatal(err)
	}
	waiting := submit(t, gw, "k:1", "of the second epoch")
	submit(t, gw, "k:2", "of the only epoch")
	want, err := gw.Show(t.Context(), "k:1")
	if err != nil {
		t.Fatal(err)
	}
	whole, other := record(t, gw, id.Scope()), record(t, gw, single.Scope())
	s.end(authority.ErrStopped)

	s = stand(t, b, func(c *authority.Config) { c.Retain = time.Millisecond })
	awaitActive(t, s, 5*time.Second)
	await(t, "the cut", func() bool { return record(t, gw, id.Scope())[0].Type == events.TypeSessionReset })
	kept := record(t, gw, id.Scope())
	if diff := cmp.Diff(types(whole[len(whole)-len(kept):]), types(kept)); diff != "" || kept[0].Ordinal == 1 {
		t.Errorf("kept from ordinal %d (-whole +kept):\n%s", kept[0].Ordinal, diff)
	}
	if got := record(t, gw, single.Scope()); len(got) != len(other) {
		t.Errorf("of the session with one epoch %d events are kept, want %d", len(got), len(other))
	}
	s.end(errCut)
	forgetIndex(t, b)

	s = stand(t, b, func(*authority.Config) {})
	awaitActive(t, s, 5*time.Second)
	got, err := gw.Show(t.Context(), "k:1")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("from the kept events: %v (-before +after):\n%s", err, diff)
	}
	if r, err := gw.Receipt(t.Context(), waiting.ID); err != nil || r.State != events.StateQueued {
		t.Errorf("the receipt of the kept epoch is %+v, %v", r, err)
	}
	if submit(t, gw, "k:1", "another"); len(record(t, gw, id.Scope())) != len(kept)+1 {
		t.Error("the session did not go on")
	}
}

// holds reports whether a stream has a message with a text.
func holds(t *testing.T, b *broker.Broker, stream, text string) bool {
	t.Helper()
	js, err := jetstream.New(bustest.System(t, b))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err == nil && (bytes.Contains(m.Data, []byte(text)) || strings.Contains(m.Subject, text)) {
			return true
		}
	}
	return false
}

func TestASessionThatIsForgottenLeavesItsEndAndNothingElse(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	s := stand(t, b, func(c *authority.Config) { c.CheckpointEvery = 10 * time.Millisecond })
	awaitActive(t, s, 5*time.Second)
	gw, op := connectTo(t, b, "gw", events.RoleGateway), connectTo(t, b, "op", events.RoleOperator)
	const key = "somebody@example.org"
	id := register(t, gw, key, events.Policy{Hosts: []events.PrincipalName{"nobody"}})
	other := register(t, gw, "k:2", events.Policy{})
	submit(t, gw, key, "a secret of somebody")
	refused(t, gw, events.CmdContinuationSubmit, map[string]any{"to": key, "nonsense": 1}, events.CodeInvalid)
	await(t, "the dead letter", func() bool { return holds(t, b, events.StreamDead, key) })
	await(t, "the index", func() bool { return holds(t, b, events.StreamSnap, key) })
	refused(t, gw, events.CmdSessionForget, events.Forget{Session: id, Reason: "asked"}, events.CodeForbidden)

	do[events.Done](t, op, events.CmdSessionForget, events.Forget{Session: id, Reason: "asked"})
	if err := op.Forget(t.Context(), id, "asked again"); err != nil {
		t.Errorf("again: %v", err)
	}
	for stream, what := range map[string]string{
		events.StreamLog: "a secret of somebody", events.StreamDead: key, events.StreamOut: string(id),
	} {
		if holds(t, b, stream, what) {
			t.Errorf("%s still has %q", stream, what)
		}
	}
	await(t, "the index without the name", func() bool { return !holds(t, b, events.StreamSnap, key) })
	for _, c := range []*standing{s, nil} {
		if c != nil {
			checkForgotten(t, gw, op, id, other)
			c.end(authority.ErrStopped)
			continue
		}
		next := stand(t, b, func(*authority.Config) {})
		awaitActive(t, next, 5*time.Second)
		checkForgotten(t, gw, op, id, other)
	}
	if again := register(t, gw, key, events.Policy{}); again == id {
		t.Error("the name leads to the removed session")
	}
}

func checkForgotten(t *testing.T, gw, op *client.Conn, id, other events.SessionID) {
	t.Helper()
	rs := record(t, gw, id.Scope())
	if len(rs) != 1 || rs[0].Type != events.TypeSessionFinalized {
		t.Errorf("of the session is kept %v", types(rs))
	}
	refused(t, op, events.CmdContinuationSubmit, events.Submit{To: string(id)}, events.CodeEpochEnded)
	if v, err := gw.Show(t.Context(), string(id)); err != nil || v.Status != events.StatusFinalized || len(v.AllNames) != 0 {
		t.Errorf("shown %+v, %v", v, err)
	}
	if v, err := gw.Show(t.Context(), "k:2"); err != nil || v.Session != other {
		t.Errorf("another session is shown as %s, %v", v.Session, err)
	}
	found := false
	for _, r := range record(t, op, events.ScopeProfile) {
		d, err := events.DataOf[events.SessionForgotten](r)
		found = found || err == nil && r.Type == events.TypeSessionForgotten && d.Session == id && d.Reason == "asked"
	}
	if !found {
		t.Error("the removal is not on record")
	}
}

// A removal that was cut off after it went on record is completed by the next term.
func TestARemovalThatWasCutOffIsCompleted(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	s := stand(t, b, func(*authority.Config) {})
	awaitActive(t, s, 5*time.Second)
	gw, op := connectTo(t, b, "gw", events.RoleGateway), connectTo(t, b, "op", events.RoleOperator)
	id := register(t, gw, "k:1", events.Policy{})
	if _, err := op.Finalize(t.Context(), "k:1", "over"); err != nil {
		t.Fatal(err)
	}
	if err := s.auth.RecordForgotten(t.Context(), profile, events.Forget{Session: id, Reason: "asked"}); err != nil {
		t.Fatal(err)
	}
	s.end(errCut)
	next := stand(t, b, func(*authority.Config) {})
	awaitActive(t, next, 5*time.Second)
	await(t, "the removal", func() bool { return len(record(t, gw, id.Scope())) == 1 })
	refused(t, gw, events.CmdSessionShow, events.SessionShow{To: "k:1"}, events.CodeUnknownSession)
}
