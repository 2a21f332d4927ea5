package travel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"keryx/internal/travel"
)

func TestDiffNamesWhatChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b, want string }{
		{"nothing", `{"a":1,"l":[]}`, `{"a":1}`, ``},
		{"a value", `{"status":"attached","n":1}`, `{"status":"running","n":1}`, `/status "attached" "running"`},
		{"what is new and gone", `{"old":{"x":true}}`, `{"new":null}`, `/new  null|/old/x true `},
		{
			"things by their ids, wherever they stand",
			`{"queue":[{"receipt":"R1","state":"queued"},{"receipt":"R2","state":"queued"}]}`,
			`{"queue":[{"receipt":"R2","state":"offered"},{"receipt":"R3","state":"queued"}]}`,
			`/queue/R1/receipt "R1" |/queue/R1/state "queued" |/queue/R2/state "queued" "offered"|/queue/R3/receipt  "R3"|/queue/R3/state  "queued"`,
		},
		{
			"names of two kinds with one value",
			`{"n":[{"kind":"a","value":"v","c":1}]}`, `{"n":[{"kind":"b","value":"v","c":1},{"kind":"a","value":"v","c":2}]}`,
			`/n/a:v/c 1 2|/n/b:v/c  1|/n/b:v/kind  "b"|/n/b:v/value  "v"`,
		},
		{"the same id twice", `{"l":[{"turn":"T","x":1}]}`, `{"l":[{"turn":"T","x":1},{"turn":"T","x":2}]}`, `/l/T#2/turn  "T"|/l/T#2/x  2`},
		{"a list of plain values is one", `{"k":["a"]}`, `{"k":["a","b"]}`, `/k ["a"] ["a","b"]`},
		{"names with slashes", `{"a/b~":1}`, `{"a/b~":2}`, `/a~1b~0 1 2`},
		{"great numbers", `{"n":9007199254740993}`, `{"n":9007199254740992}`, `/n 9007199254740993 9007199254740992`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			changes, err := travel.Diff(json.RawMessage(c.a), json.RawMessage(c.b))
			if err != nil {
				t.Fatalf("diff: %v", err)
			}
			var got []string
			for _, ch := range changes {
				got = append(got, fmt.Sprintf("%s %s %s", ch.Path, ch.From, ch.To))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// tree draws a JSON value.
func tree(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.StringN(0, 4, -1), func(s string) any { return s }))
	if depth == 0 {
		return leaf
	}
	sub := tree(depth - 1)
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(sub, 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.StringN(0, 3, -1), sub, 0, 3), func(m map[string]any) any { return m }))
}

func TestAStateDoesNotDifferFromItselfAndDiffsMirror(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := tree(3).Draw(t, "a"), tree(3).Draw(t, "b")
		if same, err := travel.Diff(a, a); err != nil || len(same) > 0 {
			t.Fatalf("a differs from itself: %v, %v", same, err)
		}
		there, err := travel.Diff(a, b)
		if err != nil {
			t.Fatal(err)
		}
		back, err := travel.Diff(b, a)
		if err != nil || len(there) != len(back) {
			t.Fatalf("%d changes there, %d back, %v", len(there), len(back), err)
		}
		for i, c := range there {
			if o := back[i]; c.Path != o.Path || string(c.From) != string(o.To) || string(c.To) != string(o.From) {
				t.Fatalf("%+v mirrors %+v", c, o)
			}
		}
	})
}
