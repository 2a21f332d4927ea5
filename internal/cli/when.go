package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"keryx/events"
	"keryx/internal/travel"
)

// timeLayouts are how a person may write a time; those without a zone are local.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// ParsePast reads a time that has passed, as [ParseTime] does, or as how long ago it was,
// such as -5m. A time of day is the last one before now.
func ParsePast(text string, now time.Time) (time.Time, error) {
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		d, err := time.ParseDuration(ago)
		if err != nil || d < 0 {
			return time.Time{}, Usagef("%q is not how long ago: write -90s, -5m or -1h30m", text)
		}
		return now.Add(-d), nil
	}
	at, err := ParseTime(text, now)
	if err != nil {
		return at, Usagef("%q is not a time: write 2026-12-01T18:00:00Z, '2026-12-01 18:00', 18:00 or -5m", text)
	}
	if isClock(text) && at.After(now) {
		y, m, d := at.Date()
		at = time.Date(y, m, d-1, at.Hour(), at.Minute(), at.Second(), 0, at.Location())
	}
	return at, nil
}

// isClock tells a time of day from a time with its date.
func isClock(text string) bool { return !strings.Contains(text, "-") }

// MomentHelp says how a person writes a moment; see [ParseMoment].
const MomentHelp = `A moment is the ordinal of an event as '#120', a sequence of the log as '120', a time
(2026-12-01T18:00:00Z, '2026-12-01 18:00', 18:00), or how long ago as '-5m'. The event that
it names, and all events at exactly that time, have happened at that moment.`

// ParseMoment reads a moment as [MomentHelp] says; an empty text is now. Its error is a
// [UsageError].
func ParseMoment(text string, now time.Time) (travel.Moment, error) {
	if text == "" {
		return travel.Moment{}, nil
	}
	digits, ordinal := strings.CutPrefix(text, "#")
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case ordinal && (err != nil || n == 0):
		return travel.Moment{}, Usagef("%q is not an ordinal: write '#1' or more", text)
	case ordinal:
		return travel.Moment{Ordinal: events.Ordinal(n)}, nil
	case err == nil && n == 0:
		return travel.Moment{}, Usagef("sequences begin at 1")
	case err == nil:
		return travel.Moment{Sequence: events.Sequence(n)}, nil
	}
	at, err := ParsePast(text, now)
	return travel.Moment{Time: at}, err
}

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
