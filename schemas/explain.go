package schemas

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explain returns one complaint out of a tree of them: the first by its place, so that
// the same data always gets the same answer.
func explain(e *jsonschema.ValidationError) *ValidationError {
	all := complaints(nil, e)
	return slices.MinFunc(all, func(a, b *ValidationError) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
}

// complaints appends the leaves below e.
func complaints(out []*ValidationError, e *jsonschema.ValidationError) []*ValidationError {
	for _, c := range e.Causes {
		out = complaints(out, c)
	}
	if len(e.Causes) > 0 {
		return out
	}
	return append(out, &ValidationError{Path: pointer(e.InstanceLocation), Message: words(e.ErrorKind)})
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(location []string) string {
	var b strings.Builder
	for _, part := range location {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(part))
	}
	return b.String()
}

// words says what is wrong for people who have not read the schema.
func words(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "missing: " + strings.Join(k.Missing, ", ")
	case *kind.AdditionalProperties:
		return "no such field: " + strings.Join(slices.Sorted(slices.Values(k.Properties)), ", ")
	case *kind.Type:
		return fmt.Sprintf("%s is needed, not %s", article(strings.Join(k.Want, " or ")), article(k.Got))
	case *kind.Enum:
		return fmt.Sprintf("%s is not one of %s", show(k.Got), list(k.Want))
	case *kind.Pattern:
		return fmt.Sprintf("%s is not %s", show(k.Got), form(k.Want))
	case *kind.Format:
		return fmt.Sprintf("%s is not a %s", show(k.Got), k.Want)
	case *kind.ContentEncoding:
		return "not " + k.Want
	}
	return bounds(k)
}

func bounds(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return fmt.Sprintf("%s is less than %s", number(k.Got), number(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf("%s is more than %s", number(k.Got), number(k.Want))
	case *kind.MinLength:
		return fmt.Sprintf("%d characters are too few, at least %d are needed", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("%d characters are too many, at most %d are taken", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("%d entries are too few, at least %d are needed", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("%d entries are too many, at most %d are taken", k.Got, k.Want)
	}
	return "breaks the rule " + strings.Join(k.KeywordPath(), "/")
}

func number(r *big.Rat) string { return strings.TrimSuffix(r.RatString(), "/1") }

// shown is how much of a wrong value an error repeats.
const shown = 64

func show(v any) string {
	s, ok := v.(string)
	if !ok {
		return fmt.Sprint(v)
	}
	if r := []rune(s); len(r) > shown {
		s = string(r[:shown]) + "..."
	}
	return fmt.Sprintf("%q", s)
}

func list(values []any) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = show(v)
	}
	return strings.Join(out, ", ")
}

func article(what string) string {
	if what == "null" {
		return what
	}
	if strings.ContainsRune("aeio", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}

// forms are the patterns in use, in words.
var forms = map[string]string{
	`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`: "a ULID (26 digits and capital letters)",
	`^[0-9]+\.[0-9]+$`:              "a fence (<generation>.<sequence>)",
	`^[a-z0-9][a-z0-9-]{0,62}$`:     "a name of a-z, 0-9 and -",
	`^[a-z0-9-]{1,63}$`:             "a name of a-z, 0-9 and -",
	`^[A-Za-z0-9_-]{1,128}$`:        "a scope: a session id or a name of letters, digits, _ and -",
	`^keryx(\.[a-z0-9_]+)+$`:        "a type such as keryx.turn.ended.v1",
	`^[0-9a-f]{64}$`:                "a SHA-256 in small hexadecimal letters",

	`^[A-Za-z0-9_-]{1,128}\.[a-z]{1,32}\.[A-Za-z0-9_-]{1,128}$`: "a lease key (<profile>.<kind>.<name>)",
}

func form(pattern string) string {
	if f, ok := forms[pattern]; ok {
		return f
	}
	return "of the form " + pattern
}
