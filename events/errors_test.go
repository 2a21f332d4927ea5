package events_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
)

// constants returns the string constants of a type that a file of this package declares.
func constants(t *testing.T, file, typ string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, text)
		}
		return true
	})
	return out
}

func TestCodes_has_every_constant_once(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, c := range events.Codes() {
		listed = append(listed, string(c.Code))
		if c.Meaning == "" || c.HTTPStatus < 400 || c.HTTPStatus > 599 {
			t.Errorf("%s has meaning %q and status %d", c.Code, c.Meaning, c.HTTPStatus)
		}
		if c.Retryable && !c.SafeToRetry {
			t.Errorf("%s is retryable but not safe to retry", c.Code)
		}
		if got, ok := events.Lookup(c.Code); !ok || got != c {
			t.Errorf("Lookup(%s) is %+v, %t", c.Code, got, ok)
		}
	}
	declared := constants(t, "errors.go", "Code")
	if len(declared) < 30 {
		t.Fatalf("only %d constants were found", len(declared))
	}
	if d := cmp.Diff(declared, listed); d != "" {
		t.Errorf("codes (-constants +table):\n%s", d)
	}
	if got, ok := events.Lookup("sung"); ok || got.Code != "sung" {
		t.Errorf("Lookup of an unknown code is %+v, %t", got, ok)
	}
}

func TestCatalogue_has_every_type_constant_once(t *testing.T) {
	t.Parallel()
	listed := map[string]int{}
	for _, e := range events.Catalogue() {
		listed[string(e.Type)]++
	}
	declared := constants(t, "type.go", "Type")
	if len(declared) != len(listed) {
		t.Errorf("%d types are declared, %d listed", len(declared), len(listed))
	}
	for _, d := range declared {
		if listed[d] != 1 {
			t.Errorf("%s is listed %d times", d, listed[d])
		}
	}
}

func TestError_is_compared_by_code_and_tells_where(t *testing.T) {
	t.Parallel()
	refusal := events.Errorf(events.CodeForbidden, "role %s may not", "host")
	refusal.Path = "/to"
	wrapped := fmt.Errorf("submit: %w", refusal)
	if !errors.Is(wrapped, events.ErrOf(events.CodeForbidden)) || errors.Is(wrapped, events.ErrOf(events.CodeBusy)) || errors.Is(wrapped, events.ErrBadID) {
		t.Error("the error is not matched by its code alone")
	}
	if got := events.CodeOf(wrapped); got != events.CodeForbidden {
		t.Errorf("code is %s", got)
	}
	if got := events.CodeOf(errors.New("x")); got != events.CodeInternal {
		t.Errorf("code of a foreign error is %s", got)
	}
	if got, want := refusal.Error(), "forbidden: role host may not (at /to)"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
	if got := events.ErrOf(events.CodeBusy).Error(); got != "busy" {
		t.Errorf("text without message is %q", got)
	}
}

func TestError_With_leaves_the_original_alone(t *testing.T) {
	t.Parallel()
	a := events.Errorf(events.CodeLeaseHeld, "held").With("holder", "x")
	b := a.With("instance", "y")
	if d := cmp.Diff(map[string]string{"holder": "x"}, a.Details); d != "" {
		t.Errorf("original (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"holder": "x", "instance": "y"}, b.Details); d != "" {
		t.Errorf("copy (-want +got):\n%s", d)
	}
	if !strings.HasPrefix(b.Error(), "lease_held") {
		t.Errorf("copy is %v", b)
	}
}
