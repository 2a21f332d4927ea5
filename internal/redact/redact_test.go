package redact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/redact"
)

func set(secrets ...string) *redact.Set {
	var values [][]byte
	for _, s := range secrets {
		values = append(values, []byte(s))
	}
	return redact.NewSet(values...)
}

// run gives a stream pieces, and releases where a piece is "".
func run(s *redact.Set, pieces ...string) (string, int) {
	var st redact.Stream
	var out []byte
	total := 0
	for _, p := range pieces {
		if p == "" {
			out = append(out, st.Release()...)
			continue
		}
		b, n := st.Write(s, []byte(p))
		out, total = append(out, b...), total+n
	}
	b, n := st.Flush(s)
	return string(append(out, b...)), total + n
}

// TestASecretIsFoundWhereverItIsSplit splits it at each point into two, and into single
// bytes.
func TestASecretIsFoundWhereverItIsSplit(t *testing.T) {
	t.Parallel()
	const secret = "tok-3f9a8b7c"
	for i := 1; i < len(secret); i++ {
		got, n := run(set(secret), "a "+secret[:i], secret[i:]+" z")
		if got != "a [redacted] z" || n != 1 {
			t.Errorf("split at %d: %q, %d found", i, got, n)
		}
	}
	if got, _ := run(set(secret), strings.Split("a "+secret+" z", "")...); got != "a [redacted] z" {
		t.Errorf("byte by byte: %q", got)
	}
}

func TestStreamsHideSecretsAndNothingElse(t *testing.T) {
	t.Parallel()
	const short, long = "tok-3f9a8b7c", "tok-3f9a8b7c-and-more"
	for _, c := range []struct {
		name   string
		set    *redact.Set
		pieces []string
		want   string
		found  int
	}{
		{"nothing registered", nil, []string{"tok-3f9a8b7c"}, "tok-3f9a8b7c", 0},
		{"of two, the longer", set(short, long), []string{"x tok-3f9a8b7c-and", "-more y"}, "x [redacted] y", 1},
		{"of two, the shorter where the longer does not go on", set(short, long), []string{"x tok-3f9a8b7c-a", "nd y"}, "x [redacted]-and y", 1},
		{"a whole one at the end that may be the beginning of another", set(short, long), []string{"x tok-3f9a8b7c"}, "x [redacted]", 1},
		{"the beginning of one at the end", set(short), []string{"x tok-3f9a"}, "x tok-3f9a", 0},
		{"one that begins anew in its beginning", set(short), []string{"tok-tok-3f9", "a8b7c"}, "tok-[redacted]", 1},
		{"two that overlap", set("abcdef", "defghi"), []string{"-abcd", "efghi-"}, "-[redacted]-", 2},
		{"one after the other", set("abcdef"), []string{"abcdefabcdef"}, "[redacted][redacted]", 2},
		{"many that overlap", set("aaaaaa"), []string{"aaaaaaaa", "aaaaaaaa"}, "[redacted]", 11},
		{"with line feeds as a terminal shows them", set("line-1\nline-2"), []string{"line-1\r", "\nline-2!"}, "[redacted]!", 1},
		{"released at a prompt, the rest is hidden", set(short), []string{"$ tok", "", "-3f9a8b7c\n"}, "$ tok[redacted]\n", 1},
		{"released, and it was none", set(short), []string{"$ tok", "", "en\n"}, "$ token\n", 0},
		{"bytes that are no text", set("\xff\x00\xfe\xff\x00\xfe"), []string{"a\xff\x00\xfe\xff", "\x00\xfeb"}, "a[redacted]b", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, n := run(c.set, c.pieces...)
			if got != c.want || n != c.found {
				t.Errorf("%q with %d found, want %q with %d", got, n, c.want, c.found)
			}
		})
	}
}

// TestNoSecretIsInWhatAStreamGivesOut draws secrets and texts of few letters, so that they
// meet in every way, and cuts them anywhere.
func TestNoSecretIsInWhatAStreamGivesOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var secrets []string
		for range rapid.IntRange(1, 4).Draw(t, "secrets") {
			secrets = append(secrets, rapid.StringMatching(`[xy]{1,6}`).Draw(t, "secret"))
		}
		text := rapid.StringMatching(`[xyz]{0,60}`).Draw(t, "text")
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		s := set(secrets...)
		got, _ := run(s, pieces...)
		for _, secret := range secrets {
			if strings.Contains(got, secret) {
				t.Fatalf("%q is in %q of %q", secret, got, text)
			}
		}
		if got != wanted(secrets, text) {
			t.Fatalf("%q, want %q of %q", got, wanted(secrets, text), text)
		}
		if whole, _ := s.Bytes([]byte(text)); string(whole) != got {
			t.Fatalf("whole %q, in pieces %q", whole, got)
		}
	})
}

// wanted covers every place of every secret and puts a mask where a covered part begins, or
// where one secret begins just behind another.
func wanted(secrets []string, text string) string {
	covered := make([]bool, len(text))
	begins := make([]bool, len(text))
	until := 0
	for i := range text {
		longest := 0
		for _, s := range secrets {
			if strings.HasPrefix(text[i:], s) {
				longest = max(longest, len(s))
			}
		}
		if longest == 0 {
			continue
		}
		begins[i] = i >= until
		until = max(until, i+longest)
		for j := i; j < i+longest; j++ {
			covered[j] = true
		}
	}
	var b strings.Builder
	for i := range text {
		if begins[i] {
			b.WriteString(redact.Mask)
		}
		if !covered[i] {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

func TestRulesHideByNameByFormAndWhatIsRegistered(t *testing.T) {
	t.Parallel()
	r := redact.Rules{Secrets: set("tok-3f9a8b7c", `quote"d-\secret`)}
	for _, c := range []struct{ name, in, want string }{
		{"nothing to hide stays byte for byte", `{ "a" : [1, 2.50e3, null, true, "<&>\u2028"] }`, `{ "a" : [1, 2.50e3, null, true, "<&>\u2028"] }`},
		{"a registered one in a text", `{"text":"use tok-3f9a8b7c now"}`, `{"text":"use [redacted] now"}`},
		{"one that JSON escapes", `{"text":"a quote\"d-\\secret b"}`, `{"text":"a [redacted] b"}`},
		{"one in base64", `{"stdin":"dG9rLTNmOWE4Yjdj"}`, `{"stdin":"W3JlZGFjdGVkXQ=="}`},
		{"by the name", `{"env_set":{"API_TOKEN":"x","LANG":"C","dbPassword":1},"apiKey":null}`, `{"env_set":{"API_TOKEN":"[redacted]","LANG":"C","dbPassword":"[redacted]"},"apiKey":null}`},
		{"all below the name", `{"credentials":{"user":"u","list":["a",2]}}`, `{"credentials":{"user":"[redacted]","list":["[redacted]","[redacted]"]}}`},
		{"an argument behind its option", `{"argv":["curl","--access-key","x","-v","--token","y"]}`, `{"argv":["curl","--access-key","[redacted]","-v","--token","[redacted]"]}`},
		{"an option with its value", `{"argv":["--password=x y","q"]}`, `{"argv":["--password=[redacted] y","q"]}`},
		{"a header", `{"t":"Authorization: Bearer abcdefgh.ijk-l rest"}`, `{"t":"Authorization: Bearer [redacted] rest"}`},
		{"a URL", `{"t":"https://u:p4ss@host/x"}`, `{"t":"https://u:[redacted]@host/x"}`},
		{"names of the bus's own", `{"gateway_session_key":"k","idempotency_key":"i","tokens":[3],"keys":["k"]}`, `{"gateway_session_key":"k","idempotency_key":"i","tokens":[3],"keys":["k"]}`},
		{"no JSON", `tok-3f9a8b7c {`, `[redacted] {`},
		{"two values", `{} {}`, `{} {}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, string(r.JSON([]byte(c.in)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStrictKeepsOnlyWhatIsOnTheList(t *testing.T) {
	t.Parallel()
	in := `{"turn":"T","outcome":"failed","reply":"text","pending":3,"new_field":7,"new_flag":true,"items":["R"],"details":{"state":"x"},"nothing":null}`
	want := `{"turn":"T","outcome":"failed","reply":"[redacted]","pending":3,"new_field":0,"new_flag":false,"items":["R"],"details":{"state":"[redacted]"},"nothing":null}`
	if diff := cmp.Diff(want, string(redact.Strict{}.JSON([]byte(in)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := string(redact.Strict{}.JSON([]byte("free text"))); got != `"[redacted]"` {
		t.Errorf("what is no JSON: %s", got)
	}
}

// TestNoEventLosesItsFormOrKeepsATextThatIsNotListed fills every event with a canary.
func TestNoEventLosesItsFormOrKeepsATextThatIsNotListed(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	for _, entry := range events.Catalogue() {
		if entry.Class != events.ClassEvent {
			continue
		}
		data := entry.New()
		fill(reflect.ValueOf(data).Elem(), canary)
		body, err := events.MarshalData(data)
		if err != nil {
			t.Fatal(err)
		}
		rules := redact.Rules{Secrets: set(canary)}.JSON(body)
		if bytes.Contains(rules, []byte(canary)) || !json.Valid(rules) {
			t.Errorf("%s by rules: %s", entry.Type, rules)
		}
		for _, free := range []string{"text", "reply", "error", "message", "argv", "value", "cwd"} {
			one := []byte(`{"` + free + `":"` + canary + `"}`)
			if bytes.Contains(redact.Strict{}.JSON(one), []byte(canary)) {
				t.Errorf("the strict mode keeps %s", free)
			}
		}
		if quiet := (redact.Rules{}).JSON(body); !bytes.Equal(quiet, body) && !strings.Contains(string(entry.Type), "token") {
			t.Errorf("%s: rules without secrets change it:\n%s\n%s", entry.Type, body, quiet)
		}
	}
}

// fill sets every text below v.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		if v.Type() == reflect.TypeFor[events.LeaseKey]() {
			v.Set(reflect.ValueOf(events.LeaseKey{Profile: "p", Kind: events.LeaseTarget, Name: "n"}))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), s)
		}
	case reflect.Slice:
		switch {
		case v.Type() == reflect.TypeFor[events.Raw]():
			v.SetBytes([]byte(`{"a":"` + s + `"}`))
		case v.Type().Elem().Kind() == reflect.Uint8:
			v.SetBytes([]byte(s))
		default:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), s)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.String:
		v.SetString(s)
	}
}

func TestTheFileIsItsOwnersAloneAndReadAnewWhenItChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), redact.FileName)
	f, err := redact.Open(path, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil || !f.Current().Empty() {
		t.Fatalf("one that is not there: %v", err)
	}
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	if err := redact.Add(path, "a", []byte("tok-3f9a8b7c"), now); err != nil {
		t.Fatalf("add: %v", err)
	}
	await(t, func() bool { return !f.Current().Empty() })
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"a name twice", redact.Add(path, "a", []byte("another-one"), now), redact.ErrTaken},
		{"too short", redact.Add(path, "b", []byte("short"), now), redact.ErrSecret},
		{"too long", redact.Add(path, "b", make([]byte, redact.MaxSecret+1), now), redact.ErrSecret},
		{"a part of the mask", redact.Add(path, "b", []byte("redacted"), now), redact.ErrSecret},
		{"one that is not there", redact.Remove(path, "b"), redact.ErrNoEntry},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := redact.Open(path, slog.Default()); !errors.Is(err, redact.ErrLoose) {
		t.Errorf("a file that others can read: %v", err)
	}
	if f.Current().Empty() {
		t.Error("what was known is forgotten")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := redact.Remove(path, "a"); err != nil {
		t.Fatalf("remove: %v", err)
	}
	await(t, func() bool { return f.Current().Empty() })
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(10 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited 10 s")
		}
	}
}

// FuzzRules looks for JSON that is not JSON any more.
func FuzzRules(f *testing.F) {
	f.Add([]byte(`{"a":[1,"--token","tok-3f9a8b7c"],"password":{"x":1}}`))
	f.Add([]byte(`{"a":"\ud800","b":1e999}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range []redact.Document{redact.Rules{Secrets: set("tok-3f9a8b7c")}, redact.Strict{}} {
			out := d.JSON(b)
			if json.Valid(b) && !json.Valid(out) {
				t.Fatalf("%s became %s", b, out)
			}
		}
	})
}
