package handlers_test

import (
	"errors"
	"strings"
	"testing"

	"keryx/events"
	"keryx/internal/handlers"
)

func record(t *testing.T, d events.HandlerRegistered) events.Record {
	t.Helper()
	body, err := events.MarshalData(d)
	if err != nil {
		t.Fatal(err)
	}
	return events.Record{Type: events.TypeHandlerRegistered, Scope: events.ScopeProfile, Data: body}
}

func TestTheSecondWhoWantsANameIsRefusedAndBothAreNamed(t *testing.T) {
	t.Parallel()
	want := events.RegisterHandler{Instance: "I1", Commands: []events.CommandSpec{{Name: "deploy"}}}
	gone := map[events.PrincipalName]bool{}
	live := func(h events.HandlerRegistered) bool { return !gone[h.Principal] }
	var s handlers.State
	first, fresh, err := s.Register("one", want, live)
	if err != nil || !fresh {
		t.Fatalf("first: %t, %v", fresh, err)
	}
	if err := s.Fold(record(t, first)); err != nil {
		t.Fatal(err)
	}
	if _, fresh, err := s.Register("one", want, live); err != nil || fresh {
		t.Errorf("the same again: %t, %v", fresh, err)
	}
	_, _, err = s.Register("two", want, live)
	var e *events.Error
	if !errors.As(err, &e) || e.Code != events.CodeNameTaken || e.Details["owner"] != "one" || e.Details["refused"] != "two" || e.Details["instance"] != "I1" {
		t.Errorf("the second: %v with %v", err, e)
	}
	gone["one"] = true
	if _, fresh, err := s.Register("two", want, live); err != nil || !fresh {
		t.Errorf("once the first is gone: %t, %v", fresh, err)
	}
	if h, _, ok := s.Find("deploy", live); ok {
		t.Errorf("found %v, which is gone", h)
	}
}

func TestARegistrationIsRefused(t *testing.T) {
	t.Parallel()
	live := func(events.HandlerRegistered) bool { return true }
	spec := func(change func(*events.CommandSpec)) []events.CommandSpec {
		c := events.CommandSpec{Name: "deploy"}
		change(&c)
		return []events.CommandSpec{c}
	}
	for _, c := range []struct {
		name     string
		commands []events.CommandSpec
		code     events.Code
		path     string
	}{
		{"the gateway's own name", spec(func(c *events.CommandSpec) { c.Name = "approve" }), events.CodeNameTaken, ""},
		{"one name twice", []events.CommandSpec{{Name: "a"}, {Name: "a"}}, events.CodeInvalid, "/commands/1/name"},
		{"help of several lines", spec(func(c *events.CommandSpec) { c.Help = "a\nb" }), events.CodeInvalid, "/commands/0/help"},
		{"too much time", spec(func(c *events.CommandSpec) { c.TimeoutMS = handlers.MaxTimeout.Milliseconds() + 1 }), events.CodeInvalid, "/commands/0/timeout_ms"},
		{"a surface without a name", spec(func(c *events.CommandSpec) { c.Surfaces = []string{""} }), events.CodeInvalid, "/commands/0/surfaces"},
		{"too many", make([]events.CommandSpec, handlers.MaxCommands+1), events.CodeInvalid, "/commands"},
	} {
		var s handlers.State
		_, _, err := s.Register("one", events.RegisterHandler{Commands: c.commands}, live)
		var e *events.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Path != c.path {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, _, err := new(handlers.State).Register("one", events.RegisterHandler{Commands: []events.CommandSpec{{Name: "new"}}}, live); err == nil ||
		!strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "gateway") {
		t.Errorf("both owners are to be named: %v", err)
	}
}
