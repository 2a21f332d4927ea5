package events_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"keryx/events"
)

// functions returns the exported functions of a file of this package, methods left out.
func functions(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() {
			out = append(out, fn.Name.Name)
		}
	}
	return out
}

func TestNames_are_validated(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for _, c := range []struct {
		value                      string
		profile, principal, target bool
	}{
		{"default", true, true, true},
		{"a", true, true, true},
		{"0-9", true, true, true},
		{long, true, true, true},
		{long + "a", false, false, false},
		{"-a", false, true, false},
		{"", false, false, false},
		{"A", false, false, false},
		{"a_b", false, false, false},
		{"a.b", false, false, false},
		{"a\n", false, false, false},
		{"é", false, false, false},
		{"*", false, false, false},
	} {
		for kind, got := range map[string]error{
			"profile": events.Profile(c.value).Validate(), "principal": events.PrincipalName(c.value).Validate(), "target": events.TargetName(c.value).Validate(),
		} {
			want := map[string]bool{"profile": c.profile, "principal": c.principal, "target": c.target}[kind]
			if (got == nil) != want || got != nil && !errors.Is(got, events.ErrBadID) {
				t.Errorf("%s %q: %v, want valid: %t", kind, c.value, got, want)
			}
		}
	}
}

func TestPrincipal_names_its_first_fault_and_its_source(t *testing.T) {
	t.Parallel()
	good := events.Principal{Profile: "default", Name: "shell", Role: events.RoleHost}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if got := good.Source(); got != "/profiles/default/principals/shell" {
		t.Errorf("source is %q", got)
	}
	for want, p := range map[string]events.Principal{
		"profile":   {Profile: "A", Name: "shell", Role: events.RoleHost},
		"principal": {Profile: "default", Name: "a b", Role: events.RoleHost},
		"role":      {Profile: "default", Name: "shell", Role: "root"},
	} {
		if err := p.Validate(); !errors.Is(err, events.ErrBadID) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %v, want one about the %s", err, want)
		}
	}
}

func TestIDs_are_ULIDs_in_capitals(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	last := ""
	for range 1000 {
		id := events.NewID()
		if !events.IsULID(id) || seen[id] || id[:10] < last {
			t.Fatalf("id %q is no new ULID after %q", id, last)
		}
		seen[id], last = true, id[:10]
	}
	for _, bad := range []string{
		"", "x", strings.ToLower(aSession), aSession + "0", aSession[1:], "81JSESS10N0000000000000000", "01JSESS1ON0000000000000000", "01JSESS10N000000000000000\n",
	} {
		if events.IsULID(bad) {
			t.Errorf("%q was taken for a ULID", bad)
		}
	}
}

func TestFences_are_ordered_by_generation_then_sequence(t *testing.T) {
	t.Parallel()
	order := []events.Fence{{}, {Sequence: 1}, {Sequence: 9}, {Sequence: 10}, {Generation: 1}, {Generation: 1, Sequence: 2}, {Generation: 2, Sequence: 1}}
	for i, f := range order {
		for j, g := range order {
			if f.Less(g) != (i < j) {
				t.Errorf("%v.Less(%v) is %t", f, g, f.Less(g))
			}
		}
		if f.IsZero() != (i == 0) {
			t.Errorf("%v.IsZero() is %t", f, f.IsZero())
		}
	}
}

func TestFence_in_JSON(t *testing.T) {
	t.Parallel()
	var v struct {
		F events.Fence `json:"f,omitzero"`
	}
	for _, c := range []struct{ in, out string }{{`{"f":"3.14"}`, `{"f":"3.14"}`}, {`{"f":""}`, `{}`}, {`{}`, `{}`}} {
		v.F = events.Fence{}
		if err := json.Unmarshal([]byte(c.in), &v); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(v); err != nil || string(b) != c.out {
			t.Errorf("%s is written as %s, %v", c.in, b, err)
		}
	}
	for _, bad := range []string{`"1"`, `"1."`, `".1"`, `"-1.2"`, `"+1.2"`, `"1.2.3"`, `" 1.2"`, `"a.b"`, `"1.99999999999999999999"`, `1.2`} {
		if err := json.Unmarshal([]byte(`{"f":`+bad+`}`), &v); err == nil {
			t.Errorf("%s was taken for a fence", bad)
		}
	}
}

func TestLeaseKey_in_JSON(t *testing.T) {
	t.Parallel()
	k := events.LeaseKey{Profile: "default", Kind: events.LeaseTarget, Name: "local"}
	b, err := json.Marshal(k)
	if err != nil || string(b) != `"default.target.local"` {
		t.Errorf("key is written as %s, %v", b, err)
	}
	var got events.LeaseKey
	if err := json.Unmarshal(b, &got); err != nil || got != k {
		t.Errorf("key is read as %+v, %v", got, err)
	}
	for _, bad := range []events.LeaseKey{{}, {Profile: "default", Kind: "target"}, {Profile: "default", Kind: "target", Name: "a.b"}, {Profile: "*", Kind: "target", Name: "a"}} {
		if b, err := json.Marshal(bad); !errors.Is(err, events.ErrBadID) {
			t.Errorf("%+v was written as %s, %v", bad, b, err)
		}
	}
	for _, bad := range []string{"", "a", "a.b", "a.b.c.d", "a..c", "a.b.*", "a.b.>", "a.b. "} {
		if _, err := events.ParseLeaseKey(bad); !errors.Is(err, events.ErrBadID) {
			t.Errorf("%q was read as a key: %v", bad, err)
		}
	}
	if s := events.AuthorityLease.String(); s != "_bus.bus.authority" {
		t.Errorf("the authority's key is %q", s)
	}
}

func TestNames_Records_are_those_that_resolve(t *testing.T) {
	t.Parallel()
	all := events.Names{
		GatewaySessionKey: "g", StoredSessionID: "s", RuntimeSessionID: "r", SessionID: "a", TaskID: "t", Home: "h", Source: "o", Surface: "u",
	}
	want := []events.Name{{Kind: events.KindGatewayKey, Value: "g"}, {Kind: events.KindStored, Value: "s"}, {Kind: events.KindAgent, Value: "a"}, {Kind: events.KindRuntime, Value: "r"}}
	if got := all.Records(); !slices.Equal(got, want) {
		t.Errorf("records are %v, want %v", got, want)
	}
	var kinds []events.NameKind
	for _, n := range want {
		kinds = append(kinds, n.Kind)
	}
	if got := events.NameKinds(); !slices.Equal(got, kinds) {
		t.Errorf("kinds are %v, want %v", got, kinds)
	}
	if got := (events.Names{TaskID: "t"}).Records(); got != nil {
		t.Errorf("records of no names are %v", got)
	}
}

func TestType_parts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ     events.Type
		short   string
		command bool
	}{
		{events.TypeTurnReportedLate, "turn.reported_late", false},
		{events.CmdExecReportExited, "exec.report_exited", true},
		{"keryx.cmd.a.b.v12", "a.b", true},
		{"other", "other", false},
	} {
		if c.typ.Short() != c.short || c.typ.IsCommand() != c.command || c.typ.Schema() != "urn:keryx:schema:"+string(c.typ) {
			t.Errorf("%s: short %q, command %t, schema %s", c.typ, c.typ.Short(), c.typ.IsCommand(), c.typ.Schema())
		}
	}
}

func TestRaw_keeps_JSON_and_knows_absent_from_null(t *testing.T) {
	t.Parallel()
	var v struct {
		D events.Raw `json:"d,omitempty"`
	}
	for _, doc := range []string{`{"d":12345678901234567890}`, `{"d":{"z":1,"a":2}}`, `{"d":null}`, `{"d":""}`, `{}`} {
		v.D = nil
		if err := json.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(v); err != nil || string(b) != doc {
			t.Errorf("%s is written as %s, %v", doc, b, err)
		}
	}
	if b, err := json.Marshal(events.Raw(nil)); err != nil || string(b) != "null" {
		t.Errorf("no JSON is written as %s, %v", b, err)
	}
	if err := (*events.Raw)(nil).UnmarshalJSON([]byte("1")); err == nil {
		t.Error("a nil pointer took a value")
	}
}

// FuzzParseFence: what is read is written in one form, and that is read as the same.
func FuzzParseFence(f *testing.F) {
	for _, s := range []string{"", "0.0", "1.2", "007.1", "18446744073709551615.1", "a", "1", "+1.1", "1.2.3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fence, err := events.ParseFence(s)
		if err != nil {
			if !errors.Is(err, events.ErrBadID) || !fence.IsZero() {
				t.Fatalf("%q gives %v, %v", s, fence, err)
			}
			return
		}
		again, err := events.ParseFence(fence.String())
		if err != nil || again != fence {
			t.Fatalf("%q is %v, written %q, read as %v, %v", s, fence, fence, again, err)
		}
	})
}

// FuzzParseLeaseKey: a key that is read is written as it was, and is one subject.
func FuzzParseLeaseKey(f *testing.F) {
	for _, s := range []string{"default.target.local", "_bus.bus.authority", "a..c", "a.b.*", "a.b.c d", "a.b.é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := events.ParseLeaseKey(s)
		if err != nil {
			if !errors.Is(err, events.ErrBadID) || k != (events.LeaseKey{}) {
				t.Fatalf("%q gives %+v, %v", s, k, err)
			}
			return
		}
		if k.String() != s {
			t.Fatalf("%q is written as %q", s, k)
		}
		if strings.Count(events.LeaseSubject(k), ".") != 4 {
			t.Fatalf("%q has the subject %q", s, events.LeaseSubject(k))
		}
		b, err := k.MarshalText()
		if err != nil || string(b) != s {
			t.Fatalf("%q is marshalled as %q, %v", s, b, err)
		}
	})
}
