package approvals_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/approvals"
)

func anAction() approvals.Action {
	grace := int64(5000)
	return approvals.Action{
		Session: "01JSESS10N0000000000000000", Epoch: 2,
		Target: approvals.Target{
			Kind: "terminal", Name: "local", Generation: 3, AccessEpoch: 1, User: "alice",
			Policy: &events.ApprovalPolicy{Default: events.ApprovalAlways, Rules: []events.ApprovalRule{{ArgvPrefix: []string{"git", "status"}, Decision: events.ApprovalNever}}},
		},
		Spec: events.ExecSpec{
			Argv: []string{"rm", "-r", "x"}, EnvSet: map[string]string{"A": "1"}, EnvUnset: []string{"B"}, Cwd: "/srv", Stdin: []byte("in"),
			TimeoutMS: 1, GraceMS: &grace, Outlives: events.OutlivesEpoch, EnvMode: events.EnvExact, PTY: &events.PTYSize{Rows: 24, Cols: 80},
		},
	}
}

// variants returns values that differ from v in one place each, with the place's name.
// It knows every kind of field that an action has, and fails at one it does not know.
func variants(t *testing.T, v reflect.Value, at string) map[string]reflect.Value {
	t.Helper()
	out := map[string]reflect.Value{}
	other := func(name string, f func(reflect.Value)) {
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		f(c)
		out[at+name] = c
	}
	switch v.Kind() {
	case reflect.String:
		other(" longer", func(c reflect.Value) { c.SetString(v.String() + "x") })
	case reflect.Int, reflect.Int64:
		other(" more", func(c reflect.Value) { c.SetInt(v.Int() + 1) })
	case reflect.Uint64:
		other(" more", func(c reflect.Value) { c.SetUint(v.Uint() + 1) })
	case reflect.Uint8:
		other(" flipped", func(c reflect.Value) { c.SetUint(v.Uint() ^ 1) })
	case reflect.Bool:
		other(" turned", func(c reflect.Value) { c.SetBool(!v.Bool()) })
	case reflect.Map:
		other(" with another value", func(c reflect.Value) { c.Set(reflect.ValueOf(map[string]string{"A": "2"})) })
		other(" with another name", func(c reflect.Value) { c.Set(reflect.ValueOf(map[string]string{"a": "1"})) })
		other(" absent", func(c reflect.Value) { c.SetZero() })
	case reflect.Slice:
		other(" absent", func(c reflect.Value) { c.SetZero() })
		for i := range v.Len() {
			for name, e := range variants(t, v.Index(i), fmt.Sprintf("%s[%d]", at, i)) {
				c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
				reflect.Copy(c, v)
				c.Index(i).Set(e)
				out[name] = c
			}
		}
	case reflect.Pointer:
		other(" absent", func(c reflect.Value) { c.SetZero() })
		for name, e := range variants(t, v.Elem(), at) {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(e)
			out[name] = p
		}
	case reflect.Struct:
		for i := range v.NumField() {
			for name, e := range variants(t, v.Field(i), at+"."+v.Type().Field(i).Name) {
				c := reflect.New(v.Type()).Elem()
				c.Set(v)
				c.Field(i).Set(e)
				out[name] = c
			}
		}
	default:
		t.Fatalf("%s is of a kind this test does not know: %s", at, v.Kind())
	}
	return out
}

func TestADigestChangesWithEachByteOfTheAction(t *testing.T) {
	t.Parallel()
	all := variants(t, reflect.ValueOf(anAction()), "action")
	seen := map[events.ActionDigest]string{anAction().Digest(): "the action itself"}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := all[name].Interface().(approvals.Action).Digest()
		if before, taken := seen[d]; taken {
			t.Errorf("%s has the digest of %s", name, before)
		}
		seen[d] = name
	}
	if len(seen) < 35 {
		t.Errorf("only %d variants were tried", len(seen))
	}
}

func TestADigestIsOfTheContentNotOfItsCopy(t *testing.T) {
	t.Parallel()
	a := anAction()
	a.Spec.EnvSet = map[string]string{"A": "1", "B": "2", "C": "3", "D": "4"}
	want := a.Digest()
	for range 50 {
		b := a
		b.Spec.EnvSet = maps.Clone(a.Spec.EnvSet)
		if got := b.Digest(); got != want {
			t.Fatalf("digest %s, then %s", want, got)
		}
	}
	if len(want) != 64 || strings.Trim(string(want), "0123456789abcdef") != "" {
		t.Errorf("digest %q", want)
	}
}

// TestNoBytesMoveFromOneArgumentToAnother looks for two lists with one form.
func TestNoBytesMoveFromOneArgumentToAnother(t *testing.T) {
	t.Parallel()
	part := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00")), 0, 3, -1), 0, 4)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := anAction(), anAction()
		a.Spec.Argv, a.Spec.EnvUnset = part.Draw(rt, "argv"), part.Draw(rt, "unset")
		b.Spec.Argv, b.Spec.EnvUnset = part.Draw(rt, "other argv"), part.Draw(rt, "other unset")
		same := slices.Equal(a.Spec.Argv, b.Spec.Argv) && slices.Equal(a.Spec.EnvUnset, b.Spec.EnvUnset)
		if (a.Digest() == b.Digest()) != same {
			rt.Fatalf("%q %q and %q %q: same digest %v", a.Spec.Argv, a.Spec.EnvUnset, b.Spec.Argv, b.Spec.EnvUnset, !same)
		}
	})
}

func TestAPolicyDecidesByItsFirstRuleThatMatches(t *testing.T) {
	t.Parallel()
	rules := func(d events.ApprovalDecision, rs ...events.ApprovalRule) *events.ApprovalPolicy {
		return &events.ApprovalPolicy{Default: d, Rules: rs}
	}
	rule := func(d events.ApprovalDecision, prefix ...string) events.ApprovalRule {
		return events.ApprovalRule{ArgvPrefix: prefix, Decision: d}
	}
	always, never, request := events.ApprovalAlways, events.ApprovalNever, events.ApprovalOnRequest
	for _, c := range []struct {
		name   string
		policy *events.ApprovalPolicy
		argv   string
		asked  bool
		need   bool
		code   events.Code
	}{
		{"no policy lets go", nil, "rm x", false, false, ""},
		{"no policy asks on request", nil, "rm x", true, true, ""},
		{"always asks", rules(always), "ls", false, true, ""},
		{"never does not", rules(never), "ls", false, false, ""},
		{"never refuses a request rather than dropping it", rules(never), "ls", true, false, events.CodeUnsupported},
		{"on request does not by itself", rules(request), "ls", false, false, ""},
		{"on request does when asked", rules(request), "ls", true, true, ""},
		{"an empty default is on request", rules(""), "ls", true, true, ""},
		{"a rule lets go", rules(always, rule(never, "git", "status")), "git status -s", false, false, ""},
		{"a rule needs all of its prefix", rules(always, rule(never, "git", "status")), "git", false, true, ""},
		{"a rule compares whole arguments", rules(always, rule(never, "git")), "gitk", false, true, ""},
		{"a path is another argument", rules(never, rule(always, "rm")), "/bin/rm x", false, false, ""},
		{"the first rule wins", rules(never, rule(always, "git", "push"), rule(never, "git")), "git push", false, true, ""},
		{"not the longest", rules(never, rule(never, "git"), rule(always, "git", "push")), "git push", false, false, ""},
		{"an empty prefix matches nothing", rules(never, rule(always)), "ls", false, false, ""},
	} {
		why, need, err := approvals.Need(c.policy, strings.Fields(c.argv), c.asked)
		if code := codeOf(err); need != c.need || code != c.code || need && why == "" {
			t.Errorf("%s: need %v (%q), code %q; want %v, %q", c.name, need, why, code, c.need, c.code)
		}
	}
}

func codeOf(err error) events.Code {
	if err == nil {
		return ""
	}
	return events.CodeOf(err)
}
