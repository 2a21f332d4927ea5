package lifecycle_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// TestAnySequenceOfCommandsKeepsTheInvariants runs random commands of several
// principals, with repeats, stale fences, time steps, and crashes between an append and
// what follows it.
func TestAnySequenceOfCommandsKeepsTheInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t, rt)
		steps := rapid.IntRange(20, 80).Draw(rt, "steps")
		for range steps {
			m.step()
			if rt.Failed() {
				return
			}
		}
		m.settled()
		checkLog(rt, m.ledger)
		checkItems(rt, m.ledger)
		checkFromEveryEpoch(rt, m.ledger)
	})
}

// machine drives a ledger with what rapid draws.
type machine struct {
	*ledger
	rt      *rapid.T
	past    []lifecycle.Command
	answers map[events.CommandID]events.Raw // first ones, of commands that appended
	fences  []events.Fence
	turns   []events.TurnID
	offers  []events.OfferID
	execs   []events.ExecID
	items   []events.ReceiptID
}

func newMachine(t *testing.T, rt *rapid.T) *machine {
	t.Helper()
	m := &machine{ledger: newLedger(rtb{t, rt}), rt: rt, answers: map[events.CommandID]events.Raw{}}
	m.crash = func() bool { return m.rarely("crash", 9) }
	m.submitTo(session) // unknown names create nothing
	if len(m.records) != 0 {
		rt.Fatal("an unknown session was created")
	}
	policy := events.Policy{Hosts: []events.PrincipalName{host.Name, aide.Name}, Peers: true}
	policy.IdleTTLMS = rapid.SampledFrom([]int64{0, 4000, 20000}).Draw(rt, "idle ttl")
	policy.HostGoneMS = rapid.SampledFrom([]int64{0, 5000}).Draw(rt, "host gone")
	policy.Lifetime = rapid.SampledFrom([]events.Lifetime{"", events.LifetimeBus}).Draw(rt, "lifetime")
	m.send(gw1, events.Register{Names: events.Names{GatewaySessionKey: "k1"}, Policy: policy})
	return m
}

func (m *machine) submitTo(to events.SessionID) {
	_, err := lifecycle.Decide(&lifecycle.State{}, m.command(gw1, m.id(), events.Submit{To: string(to)}))
	if events.CodeOf(err) != events.CodeUnknownSession {
		m.rt.Fatalf("submit to nobody: %v", err)
	}
}

// rtb is a testing.TB whose failures rapid sees and shrinks.
type rtb struct {
	testing.TB
	rt *rapid.T
}

func (b rtb) Helper()                           {}
func (b rtb) Fatalf(format string, args ...any) { b.rt.Fatalf(format, args...) }
func (b rtb) Fatal(args ...any)                 { b.rt.Fatal(args...) }

func (m *machine) step() {
	steps := []time.Duration{0, 0, 0, time.Millisecond, 700 * time.Millisecond, 3 * time.Second, 6 * time.Second, time.Minute}
	m.after(rapid.SampledFrom(steps).Draw(m.rt, "wait"))
	if !m.rarely("commands before what is owed", 3) {
		m.settle()
	}
	if len(m.past) > 0 && m.rarely("repeat", 6) {
		c := rapid.SampledFrom(m.past).Draw(m.rt, "which")
		again := m.command(c.Caller, c.ID, c.Data)
		again.Sent = c.Sent
		m.perform(again)
	} else {
		by, data := m.draw()
		m.send(by, data)
	}
	m.learn()
	m.compare()
}

func (m *machine) send(by events.Principal, data any) {
	c := m.command(by, m.id(), data)
	m.past = append(m.past, c)
	m.perform(c)
}

// perform runs a command as a sender would: through crashes and interrupts, until it
// has an answer, and holds the answer against the first one.
func (m *machine) perform(c lifecycle.Command) {
	before := len(m.records)
	for range 10 {
		raw, wait, err := m.run(c)
		switch {
		case errors.Is(err, errCrashed):
			if m.rarely("sender gives up", 2) {
				return
			}
		case err != nil:
			if events.CodeOf(err) == events.CodeInternal {
				m.rt.Fatalf("%T: %v", c.Data, err)
			}
			if first, ok := m.answers[c.ID]; ok {
				m.rt.Fatalf("%T was answered %s and is refused now: %v", c.Data, first, err)
			}
			return
		case wait != nil:
			m.endTurn(*wait)
			c = c.Pinned(*wait)
		default:
			m.answered(c, raw, before)
			return
		}
	}
}

func (m *machine) answered(c lifecycle.Command, raw events.Raw, before int) {
	if first, ok := m.answers[c.ID]; ok {
		if string(first) != string(raw) {
			m.rt.Fatalf("%T was answered %s first, then %s", c.Data, first, raw)
		}
		if len(m.records) != before {
			m.rt.Fatalf("a repeat of %T appended %v", c.Data, m.types()[before:])
		}
		return
	}
	if _, kept := m.state.Answer(c.ID); kept {
		m.answers[c.ID] = raw
	}
}

// endTurn does what follows an interrupt: the host ends the turn, or does not in time.
func (m *machine) endTurn(i lifecycle.Interruption) {
	t := m.state.Running()
	if t == nil || t.Turn != i.Turn {
		m.rt.Fatalf("interrupt of %s, which does not run", i.Turn)
	}
	if !m.rarely("host does not obey", 2) {
		m.send(principal(t.Host, events.RoleHost), events.End{
			Session: session, Fence: t.Fence, Turn: t.Turn, Outcome: events.OutcomeAborted,
		})
		return
	}
	if _, _, err := m.run(m.command(self, m.id(), lifecycle.TurnTimeout{Turn: i.Turn})); err != nil && !errors.Is(err, errCrashed) {
		m.rt.Fatalf("turn timeout: %v", err)
	}
}

// learn notes ids that later commands may use.
func (m *machine) learn() {
	if h := m.state.Host; h != nil && !slices.Contains(m.fences, h.Fence) {
		m.fences = append(m.fences, h.Fence)
	}
	if o, ok := m.state.OpenOffer(); ok && !slices.Contains(m.offers, o.ID) {
		m.offers = append(m.offers, o.ID)
	}
	for _, it := range m.state.Queue.Waiting() {
		if !slices.Contains(m.items, it.Receipt) {
			m.items = append(m.items, it.Receipt)
		}
	}
	for _, e := range m.state.Execs() {
		if !slices.Contains(m.execs, e.Request.Exec) {
			m.execs = append(m.execs, e.Request.Exec)
		}
	}
}

// compare holds the state against the log: deciding changed nothing, and folding one by
// one is folding at once.
func (m *machine) compare() {
	want := m.refold(0)
	if diff := cmp.Diff(want, m.state, everything); diff != "" {
		m.rt.Fatalf("state differs from its log (-log +state):\n%s", diff)
	}
}

// settled lets what is owed come to rest.
func (m *machine) settled() {
	m.crash = func() bool { return false }
	m.settle()
	m.compare()
}

// checkFromEveryEpoch folds the log from the first event of each epoch on: it must
// live like the whole.
func checkFromEveryEpoch(rt *rapid.T, l *ledger) {
	for i, r := range l.records {
		carried := carryOf(l.data[i])
		if carried == nil {
			continue
		}
		s := l.refold(i)
		if diff := cmp.Diff(l.state.View(), s.View(), everything); diff != "" {
			rt.Fatalf("view from epoch %d on (-whole +from):\n%s", r.Epoch, diff)
		}
		for _, it := range carried.Items {
			want, _ := l.state.Receipt(it.Receipt)
			if got, ok := s.Receipt(it.Receipt); !ok || got != want {
				rt.Fatalf("receipt of carried item: %+v, want %+v", got, want)
			}
		}
		for _, p := range l.records {
			want, _ := l.state.Answer(p.Causation)
			if got, ok := s.Answer(p.Causation); ok && string(got) != string(want) {
				rt.Fatalf("answer %s, want %s", got, want)
			} else if !ok && want != nil {
				rt.Fatalf("answer %s is gone from epoch %d on", want, r.Epoch)
			}
		}
		checkOwedAlike(rt, l, s)
	}
}

func checkOwedAlike(rt *rapid.T, l *ledger, s lifecycle.State) {
	mint := func() string { return "x" }
	for _, after := range []time.Duration{0, 5 * time.Second, time.Hour} {
		d1, n1 := lifecycle.Owed(&l.state, l.now.Add(after), mint)
		d2, n2 := lifecycle.Owed(&s, l.now.Add(after), mint)
		if diff := cmp.Diff(d1, d2, everything); diff != "" || !n1.Equal(n2) {
			rt.Fatalf("owed after %s: next %s and %s, (-whole +from):\n%s", after, n1, n2, diff)
		}
	}
}

func carryOf(data any) *events.Carry {
	switch d := data.(type) {
	case events.SessionRegistered:
		return d.Carry
	case events.SessionReset:
		return &d.Carry
	}
	return nil
}

func decodeTo[T any](tb testing.TB, raw []byte) T {
	tb.Helper()
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		tb.Fatalf("decode %s: %v", raw, err)
	}
	return out
}
