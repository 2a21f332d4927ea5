package handlers

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"keryx/events"
)

// Bounds of a registration.
const (
	// MaxCommands is how many slash commands one process may declare.
	MaxCommands = 100
	// MaxTimeout is how long an answer may take at most.
	MaxTimeout = time.Hour
)

// State is the fold of a profile's registrations. The zero value has none.
type State struct {
	current map[events.PrincipalName]events.HandlerRegistered
}

// Live reports whether a registration's process has its lease.
type Live func(events.HandlerRegistered) bool

// Fold applies one event. Types that are not about handlers change nothing; data that cannot
// be decoded is an error and changes nothing.
func (s *State) Fold(r events.Record) error {
	if r.Type != events.TypeHandlerRegistered {
		return nil
	}
	d, err := events.DataOf[events.HandlerRegistered](r)
	if err != nil {
		return err
	}
	if s.current == nil {
		s.current = make(map[events.PrincipalName]events.HandlerRegistered)
	}
	s.current[d.Principal] = d
	return nil
}

// Register decides on a registration. It returns what is registered then, and whether that
// is new.
func (s *State) Register(by events.PrincipalName, c events.RegisterHandler, live Live) (events.HandlerRegistered, bool, error) {
	next := events.HandlerRegistered{
		Handler: events.Handler{Principal: by, Instance: c.Instance}, LeaseFence: c.LeaseFence, Commands: c.Commands,
	}
	if err := s.check(next, live); err != nil {
		return events.HandlerRegistered{}, false, err
	}
	cur, ok := s.current[by]
	return next, !ok || !reflect.DeepEqual(cur, next), nil
}

func (s *State) check(next events.HandlerRegistered, live Live) error {
	if len(next.Commands) > MaxCommands {
		return invalid("/commands", "%d commands, at most %d are taken", len(next.Commands), MaxCommands)
	}
	for i, c := range next.Commands {
		path := fmt.Sprintf("/commands/%d", i)
		if err := checkSpec(path, c); err != nil {
			return err
		}
		if slices.ContainsFunc(next.Commands[:i], func(o events.CommandSpec) bool { return o.Name == c.Name }) {
			return invalid(path+"/name", "/%s is declared twice", c.Name)
		}
		if err := s.checkFree(next.Handler, c.Name, live); err != nil {
			return err
		}
	}
	return nil
}

func checkSpec(path string, c events.CommandSpec) error {
	switch {
	case c.TimeoutMS > MaxTimeout.Milliseconds():
		return invalid(path+"/timeout_ms", "an answer may take %s at most", MaxTimeout)
	case strings.ContainsAny(c.Help, "\r\n"):
		return invalid(path+"/help", "help is one line")
	case slices.Contains(c.Surfaces, ""):
		return invalid(path+"/surfaces", "a surface without a name")
	}
	return nil
}

// checkFree refuses a name that another has, and says who wants it and who has it.
func (s *State) checkFree(by events.Handler, name events.CommandName, live Live) error {
	if name.Reserved() {
		return taken(name, by.Principal, "the gateway itself")
	}
	if owner, _, ok := s.Find(name, live); ok && owner.Principal != by.Principal {
		return taken(name, by.Principal, string(owner.Principal)).With("instance", string(owner.Instance))
	}
	return nil
}

func taken(name events.CommandName, wants events.PrincipalName, has string) *events.Error {
	return events.Errorf(events.CodeNameTaken, "/%s is carried out by %s, so that %s cannot", name, has, wants).
		With("owner", has).With("refused", string(wants))
}

func invalid(path, format string, args ...any) *events.Error {
	e := events.Errorf(events.CodeInvalid, format, args...)
	e.Path = path
	return e
}

// Find returns the live process that carries out a slash command.
func (s *State) Find(name events.CommandName, live Live) (events.Handler, events.CommandSpec, bool) {
	for _, by := range slices.Sorted(maps.Keys(s.current)) {
		h := s.current[by]
		i := slices.IndexFunc(h.Commands, func(c events.CommandSpec) bool { return c.Name == name })
		if i >= 0 && live(h) {
			return h.Handler, h.Commands[i], true
		}
	}
	return events.Handler{}, events.CommandSpec{}, false
}

// List returns the slash commands for which keep says yes, of live processes, by name.
func (s *State) List(keep func(events.CommandSpec) bool, live Live) []events.CommandItem {
	out := []events.CommandItem{}
	for _, h := range s.current {
		if !live(h) {
			continue
		}
		for _, c := range h.Commands {
			if keep(c) {
				out = append(out, events.CommandItem{Name: c.Name, Help: c.Help, Handler: h.Principal, Fields: c.Fields})
			}
		}
	}
	slices.SortFunc(out, func(a, b events.CommandItem) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
