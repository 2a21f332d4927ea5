package lifecycle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/lifecycle"
)

const (
	profile = events.Profile("test")
	session = events.SessionID("01JSESSION0000000000000000")
	other   = events.SessionID("01JOTHER000000000000000000")
)

var (
	gw1  = principal("gw1", events.RoleGateway)
	gw2  = principal("gw2", events.RoleGateway)
	op   = principal("op", events.RoleOperator)
	host = principal("host", events.RoleHost)
	aide = principal("aide", events.RoleHost) // wanted as well
	rude = principal("rude", events.RoleHost) // wanted by nobody
	exe  = principal("exe", events.RoleExecutor)
	self = principal(events.AuthorityName, "")

	start = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
)

func principal(n events.PrincipalName, r events.Role) events.Principal {
	return events.Principal{Profile: profile, Name: n, Role: r}
}

// ledger is a session's log in memory, with what an authority does around it.
type ledger struct {
	t       testing.TB
	records []events.Record
	data    []any // of records, as drafted
	state   lifecycle.State
	names   map[events.Name]lifecycle.NameHit
	now     time.Time
	seq     events.Sequence
	minted  int
	// crash is asked after each append: true drops the memory.
	crash func() bool
	sent  []lifecycle.Effect
	// place is where execs run, and judges are who is asked before a tool does.
	place  lifecycle.Place
	judges []events.Judge
	// handler carries out slash commands.
	handler lifecycle.HandlerPlace
}

func newLedger(tb testing.TB) *ledger {
	tb.Helper()
	return &ledger{
		t: tb, now: start, names: map[events.Name]lifecycle.NameHit{},
		crash: func() bool { return false },
	}
}

func (l *ledger) mint() string { l.minted++; return fmt.Sprintf("01JMINT%019d", l.minted) }

func (l *ledger) id() events.CommandID { return events.CommandID(l.mint()) }

func (l *ledger) after(d time.Duration) { l.now = l.now.Add(d) }

// command fills in what an authority knows.
func (l *ledger) command(by events.Principal, id events.CommandID, data any) lifecycle.Command {
	c := lifecycle.Command{
		ID: id, Caller: by, Data: data, Now: l.now, Sent: l.now, Session: session,
		DefaultHosts: []events.PrincipalName{host.Name, aide.Name}, Generation: 1, Mint: l.mint,
		Place: l.place, Judges: l.judges, Handler: l.handler, By: by.Role,
	}
	for _, n := range given(data).Records() {
		h := l.names[n]
		h.Name = n
		c.Hits = append(c.Hits, h)
	}
	if to := target(data); to != "" && to != string(session) {
		for _, k := range events.NameKinds() {
			if n := (events.Name{Kind: k, Value: to}); l.names[n].Record != nil && c.Via == nil {
				c.Via = l.state.NameOf(n)
			}
		}
	}
	return c
}

func given(data any) events.Names {
	switch d := data.(type) {
	case events.Register:
		return d.Names
	case events.Alias:
		return d.Names
	case events.Reanchor:
		return events.Names{StoredSessionID: d.StoredSessionID}
	case events.Attach:
		return events.Names{RuntimeSessionID: d.RuntimeSessionID}
	}
	return events.Names{}
}

func target(data any) string {
	switch d := data.(type) {
	case events.Submit:
		return d.To
	case events.Alias:
		return d.To
	case events.Reset:
		return d.To
	case events.Finalize:
		return d.To
	case events.Interrupt:
		return d.To
	case events.InvokeCommand:
		return d.To
	}
	return ""
}

// run decides a command to its end. lost means that a crash came in the middle of its
// chain: its sender would repeat it.
func (l *ledger) run(c lifecycle.Command) (answer events.Raw, lost *lifecycle.Interruption, err error) {
	for range 20 {
		d, err := lifecycle.Decide(&l.state, c)
		switch {
		case err != nil:
			if d.Drafts != nil || d.Answer != nil {
				l.t.Fatalf("a refusal came with a decision: %+v", d)
			}
			return nil, nil, err
		case d.Interrupt != nil:
			return nil, d.Interrupt, nil
		case len(d.Drafts) == 0:
			l.sent = append(l.sent, d.Effects...)
			return d.Answer, nil, nil
		}
		crashed := l.append(c.Caller, c.ID, d)
		switch {
		case d.Again && crashed:
			return nil, nil, errCrashed
		case d.Again:
			continue
		}
		a, ok := l.state.Answer(c.ID)
		if !ok && !d.Wait && c.Caller.Name != events.AuthorityName {
			l.t.Fatalf("%T left no answer", c.Data)
		}
		return a, nil, nil
	}
	l.t.Fatalf("%T has no end", c.Data)
	return nil, nil, nil
}

var errCrashed = errors.New("crashed in the middle of a chain")

func (l *ledger) append(by events.Principal, cause events.CommandID, d lifecycle.Decision) (crashed bool) {
	for _, n := range d.Names {
		l.seq++
		l.names[n.Name] = lifecycle.NameHit{Name: n.Name, Record: &n, Sequence: l.seq}
	}
	base := l.state.LastOrdinal
	for i, draft := range d.Drafts {
		body, err := json.Marshal(draft.Data)
		if err != nil {
			l.t.Fatalf("encode %s: %v", draft.Type, err)
		}
		if len(body) > events.MaxData {
			l.t.Fatalf("%s has %d bytes", draft.Type, len(body))
		}
		l.seq++
		at := l.now
		if at.Before(l.state.LastTime) {
			at = l.state.LastTime
		}
		by, cause := by, cause
		if draft.Own {
			by, cause = self, ""
		}
		r := events.Record{
			Type: draft.Type, ID: events.EventID(l.mint()), Time: at, Source: by.Source(),
			Profile: profile, Scope: session.Scope(), Sequence: l.seq, Ordinal: base + events.Ordinal(i+1),
			Epoch: draft.Epoch, Turn: draft.Turn, Causation: cause, Data: body,
		}
		l.records, l.data = append(l.records, r), append(l.data, draft.Data)
		l.fold(r)
	}
	if l.crash() {
		l.state = l.refold(0)
		l.sent = append(l.sent, lifecycle.Resume(&l.state)...)
		return true
	}
	return false
}

func (l *ledger) fold(r events.Record) {
	if err := lifecycle.Fold(&l.state, r); err != nil {
		l.t.Fatalf("fold: %v", err)
	}
	l.sent = append(l.sent, lifecycle.Effects(&l.state, r)...)
}

// refold makes a state from the log, from the i-th record on.
func (l *ledger) refold(i int) lifecycle.State {
	var s lifecycle.State
	for _, r := range l.records[i:] {
		if err := lifecycle.Fold(&s, r); err != nil {
			l.t.Fatalf("refold: %v", err)
		}
	}
	return s
}

// settle appends what is owed until nothing is.
func (l *ledger) settle() {
	for range 50 {
		d, next := lifecycle.Owed(&l.state, l.now, l.mint)
		if len(d.Drafts) == 0 {
			if l.use() {
				continue
			}
			if !next.IsZero() && !next.After(l.now) {
				l.t.Fatalf("nothing is owed, but the next look is now")
			}
			return
		}
		if len(d.Drafts) > 1 {
			l.t.Fatalf("%d events owed at once", len(d.Drafts))
		}
		l.append(self, "", d)
	}
	l.t.Fatalf("the session owes without end")
}

// use has the first granted approval used, as an authority does.
func (l *ledger) use() bool {
	granted := lifecycle.Granted(&l.state)
	if len(granted) == 0 {
		return false
	}
	if _, _, err := l.run(l.command(self, l.id(), lifecycle.UseApproval{Approval: granted[0].Approval})); err != nil && !errors.Is(err, errCrashed) {
		l.t.Fatalf("use an approval: %v", err)
	}
	return true
}

// do runs a command that must succeed, then what is owed, and decodes the answer.
func do[A any](l *ledger, by events.Principal, data any) A {
	l.t.Helper()
	a, err := try[A](l, by, data)
	if err != nil {
		l.t.Fatalf("%T by %s: %v", data, by.Name, err)
	}
	return a
}

func try[A any](l *ledger, by events.Principal, data any) (A, error) {
	l.t.Helper()
	var out A
	raw, i, err := l.run(l.command(by, l.id(), data))
	if err != nil {
		return out, err
	}
	if i != nil {
		l.t.Fatalf("%T waits for turn %s", data, i.Turn)
	}
	l.settle()
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			l.t.Fatalf("answer of %T: %v", data, err)
		}
	}
	return out, nil
}

// refused runs a command that must be refused with a code and change nothing. It
// returns the details of the refusal.
func (l *ledger) refused(by events.Principal, data any, code events.Code) map[string]string {
	l.t.Helper()
	n := len(l.records)
	_, _, err := l.run(l.command(by, l.id(), data))
	var e *events.Error
	if !errors.As(err, &e) || e.Code != code {
		l.t.Fatalf("%T by %s: got %v, want %s", data, by.Name, err, code)
	}
	if len(l.records) != n {
		l.t.Fatalf("%T was refused and appended %v", data, l.types()[n:])
	}
	return e.Details
}

func (l *ledger) types() []string {
	out := make([]string, 0, len(l.records))
	for _, r := range l.records {
		out = append(out, fmt.Sprintf("%s/%d", r.Type.Short(), r.Epoch))
	}
	return out
}

func (l *ledger) wantTypes(from int, want ...string) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.types()[from:]); diff != "" {
		l.t.Fatalf("events (-want +got):\n%s", diff)
	}
}

// everything compares states field by field.
var everything = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
}

// The usual acts of a session's life.

func (l *ledger) register(p events.Policy) {
	l.t.Helper()
	do[events.Registered](l, gw1, events.Register{Names: events.Names{GatewaySessionKey: "k1"}, Policy: p})
}

func (l *ledger) attach(caps ...events.Capability) events.Fence {
	l.t.Helper()
	return do[events.Attached](l, host, events.Attach{Session: session, Instance: "i1", Capabilities: caps}).Fence
}

func (l *ledger) submit(text string) events.Receipt {
	l.t.Helper()
	return do[events.Receipt](l, gw1, events.Submit{To: "k1", Body: events.Body{Text: text}})
}

func (l *ledger) accept(f events.Fence) events.TurnID {
	l.t.Helper()
	o, ok := l.state.OpenOffer()
	if !ok {
		l.t.Fatal("no offer is open")
	}
	turn := events.TurnID(l.mint())
	do[events.Accepted](l, host, events.Accept{Session: session, Fence: f, Offer: o.ID, Turn: turn})
	return turn
}

func (l *ledger) end(f events.Fence, turn events.TurnID, o events.Outcome) events.Ended {
	l.t.Helper()
	return do[events.Ended](l, host, events.End{Session: session, Fence: f, Turn: turn, Outcome: o, Reply: "r"})
}
