package httpapi_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"keryx/events"
	"keryx/internal/httpapi"
	"keryx/schemas"
)

const openAPIFile = "../../schemas/openapi.yaml"

func TestOpenAPI_is_that_of_the_routes(t *testing.T) {
	t.Parallel()
	want, err := httpapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schemas/openapi.yaml is not what the routes make; run go generate ./schemas")
	}
	if !bytes.Equal(schemas.OpenAPI, got) {
		t.Error("another document is embedded")
	}
}

// TestOpenAPI_and_the_router_have_the_same_routes asks the router itself, both ways.
func TestOpenAPI_and_the_router_have_the_same_routes(t *testing.T) {
	t.Parallel()
	mux := httpapi.Router()
	documented := map[string]bool{}
	for _, op := range operations(t) {
		documented[op.method+" "+op.path] = true
		r, err := http.NewRequest(op.method, "http://x"+strings.NewReplacer("{", "", "}", "").Replace(op.path), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, pattern := mux.Handler(r); pattern != op.method+" "+op.path {
			t.Errorf("%s %s is routed to %q", op.method, op.path, pattern)
		}
	}
	for _, route := range httpapi.Routes() {
		if !documented[route] {
			t.Errorf("%s is routed and not in the document", route)
		}
	}
	if len(httpapi.Routes()) != len(documented) {
		t.Errorf("%d routes, %d documented", len(httpapi.Routes()), len(documented))
	}
}

func TestOpenAPI_names_commands_and_roles_of_the_catalogue(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, op := range operations(t) {
		if ids[op.id] {
			t.Errorf("operation %s is there twice", op.id)
		}
		ids[op.id] = true
		if len(op.roles) == 0 {
			t.Errorf("%s is for nobody", op.id)
		}
		if op.command == "" {
			continue
		}
		e, ok := events.Find(op.command)
		if !ok {
			t.Errorf("%s sends %s, which is no command", op.id, op.command)
			continue
		}
		for _, r := range events.TokenRoles() {
			if slices.Contains(e.Roles, r) != slices.Contains(op.roles, r) {
				t.Errorf("%s: role %s is not as the catalogue has it", op.id, r)
			}
		}
		if op.method == http.MethodGet && !e.Read {
			t.Errorf("%s asks, and sends %s, which changes something", op.id, op.command)
		}
	}
}
