package cli

import (
	"slices"
	"strings"
	"time"
)

// timeLayouts are how a person may write a time; those without a zone are local.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// ParseTime reads a time as RFC 3339, as a local date and time, or as a local time of
// day, which is the next one after now. Its error is a [UsageError].
func ParseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		y, m, d := now.Date()
		at := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if !at.After(now) {
			at = time.Date(y, m, d+1, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		}
		return at, nil
	}
	return time.Time{}, Usagef("%q is not a time: write 2026-12-01T18:00:00Z, '2026-12-01 18:00' or 18:00", text)
}

// OneOf checks the value of a flag against a closed set.
func OneOf[T ~string](flag, value string, set ...T) (T, error) {
	if value == "" || slices.Contains(set, T(value)) {
		return T(value), nil
	}
	return "", Usagef("--%s %q: one of %s", flag, value, strings.Join(Words(set), ", "))
}

// Words returns a list of names as plain strings.
func Words[T ~string](set []T) []string {
	out := make([]string, len(set))
	for i, s := range set {
		out[i] = string(s)
	}
	return out
}
