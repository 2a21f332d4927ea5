package travel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Change is one value that differs between two states.
type Change struct {
	// Path is a JSON pointer, in which the elements of a list of things with ids are named
	// by their ids: /queue/<receipt>/state.
	Path string `json:"path"`
	// From and To are JSON; nil where there was nothing.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// Diff returns what differs between the JSON forms of two values, in order of the paths.
func Diff(a, b any) ([]Change, error) {
	before, err := flatten(a)
	if err != nil {
		return nil, err
	}
	after, err := flatten(b)
	if err != nil {
		return nil, err
	}
	out := []Change{}
	for path, from := range before {
		if to := after[path]; !bytes.Equal(from, to) {
			out = append(out, Change{Path: path, From: from, To: to})
		}
	}
	for path, to := range after {
		if _, known := before[path]; !known {
			out = append(out, Change{Path: path, To: to})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// flatten returns the single values of v's JSON form by their paths. Lists of single
// values are one value, and so is what is empty.
func flatten(v any) (map[string]json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("compare states: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("compare states: %w", err)
	}
	out := make(map[string]json.RawMessage)
	return out, spread(out, "", tree)
}

func spread(out map[string]json.RawMessage, path string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if err := spread(out, path+"/"+escape(name), member); err != nil {
				return err
			}
		}
		if len(v) > 0 {
			return nil
		}
	case []any:
		if names, ok := elements(v); ok {
			for i, e := range v {
				if err := spread(out, path+"/"+escape(names[i]), e); err != nil {
					return err
				}
			}
			return nil
		}
		if len(v) == 0 {
			return nil // a list that is empty is as good as none
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("compare states at %s: %w", path, err)
	}
	out[path] = b
	return nil
}

// identities are the members that tell the elements of a list from each other.
var identities = []string{"receipt", "exec", "turn", "stored_session_id", "value"}

// elements names the elements of a list of objects; ok is false for other lists.
func elements(list []any) (names []string, ok bool) {
	seen := make(map[string]int)
	for i, e := range list {
		object, ok := e.(map[string]any)
		if !ok {
			return nil, false
		}
		name := identity(object, i)
		if seen[name]++; seen[name] > 1 {
			name += "#" + strconv.Itoa(seen[name])
		}
		names = append(names, name)
	}
	return names, len(list) > 0
}

func identity(object map[string]any, i int) string {
	for _, member := range identities {
		text, ok := object[member].(string)
		if !ok {
			continue
		}
		if kind, ok := object["kind"].(string); ok && member == "value" {
			text = kind + ":" + text
		}
		return text
	}
	return strconv.Itoa(i)
}

// escape spells a name as a token of a JSON pointer (RFC 6901).
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
