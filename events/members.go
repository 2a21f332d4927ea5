package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// member is one name and value of a JSON object. The value is a part of the text that
// was read, and never empty.
type member struct {
	name  string
	value json.RawMessage
}

// readMembers reads the members of one JSON object; a name given twice is refused.
func readMembers(b []byte) ([]member, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("not UTF-8")
	}
	if !json.Valid(b) {
		return nil, errors.New("not JSON")
	}
	i := skipSpace(b, 0)
	if b[i] != '{' {
		return nil, errors.New("not a JSON object")
	}
	out := make([]member, 0, 16)
	seen := make(map[string]struct{}, 16)
	for i = skipSpace(b, i+1); b[i] != '}'; {
		end := endOfString(b, i)
		name, err := unquoteJSON(b[i:end])
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", b[i:end], err)
		}
		if _, twice := seen[name]; twice {
			return nil, fmt.Errorf("member %q is given twice", name)
		}
		seen[name] = struct{}{}
		i = skipSpace(b, skipSpace(b, end)+1) // over the colon
		end = endOfValue(b, i)
		out = append(out, member{name, b[i:end:end]})
		if i = skipSpace(b, end); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return out, nil
}

// The functions below walk over text known to be JSON, so they need no bounds checks
// of their own.

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

// endOfString returns the index after the string that begins at i.
func endOfString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOfValue returns the index after the member's value that begins at i.
func endOfValue(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = endOfString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 { // the end of the object around a number or a word
				return i
			}
			depth--
			i++
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
}
