package replay

import (
	"strconv"
	"strings"
	"time"

	"keryx/events"
	"keryx/internal/termtext"
)

// Options say how lines look. The zero value is plain text in UTC, cut nowhere but at
// [MaxText].
type Options struct {
	// Width is that of the terminal; lines are cut to it. 0 for none.
	Width int
	// Color uses colors.
	Color bool
	// Location is the time zone; nil for UTC.
	Location *time.Location
	// Scope shows the scope of each event, for records of several scopes.
	Scope bool
}

// MaxText is where a line is cut in any case, in cells.
const MaxText = 4096

// Layouts of times: a line has only the time of day, the day has a line of its own.
const (
	clockLayout = "15:04:05.000"
	dayLayout   = "2006-01-02 MST"
)

func (o Options) location() *time.Location {
	if o.Location == nil {
		return time.UTC
	}
	return o.Location
}

// Line returns one event as one line, without its end. Without the events before it, it
// does not tell how long a turn took; a [Writer] does. It is safe for concurrent use.
func Line(r events.Record, o Options) string { return new(story).line(r, o) }

// Text returns the one thing that matters about an event, safe to print. It is safe for
// concurrent use.
func Text(r events.Record) string {
	text, _ := new(story).tell(r)
	return termtext.Cut(termtext.Visible(text), MaxText)
}

// line tells r and remembers it.
func (s *story) line(r events.Record, o Options) string {
	text, tone := s.tell(r)
	cols := []column{
		{r.Time.In(o.location()).Format(clockLayout), dim},
		{pad(r.Ordinal.String(), -4), dim},
		{pad("e"+r.Epoch.String(), 3), dim},
	}
	if o.Scope {
		cols = append(cols, column{pad(string(r.Scope), 26), dim})
	}
	cols = append(cols,
		column{pad(termtext.Visible(r.Type.Short()), 20), nounTone(r.Type)},
		column{pad(who(r), 8), plain},
		column{termtext.Visible(text), tone})
	return layOut(cols, o)
}

type column struct {
	text string
	tone tone
}

// layOut joins the columns, cuts the line to its width, and colors what is left.
func layOut(cols []column, o Options) string {
	room := MaxText
	if o.Width > 0 {
		room = min(o.Width, MaxText)
	}
	var b strings.Builder
	for i, c := range cols {
		if i > 0 && room > 0 {
			b.WriteByte(' ')
			room--
		}
		if room <= 0 {
			break
		}
		text := termtext.Cut(c.text, room)
		room -= termtext.Width(text)
		b.WriteString(c.tone.paint(text, o.Color))
	}
	return strings.TrimRight(b.String(), " ")
}

// pad fills s with spaces to n cells, on the left if n is negative.
func pad(s string, n int) string {
	if n < 0 {
		return strings.Repeat(" ", max(0, -n-termtext.Width(s))) + s
	}
	return s + strings.Repeat(" ", max(0, n-termtext.Width(s)))
}

// who returns the principal that caused r: the name in its source, "bus" for the
// authority itself.
func who(r events.Record) string {
	name := r.Source[strings.LastIndexByte(r.Source, '/')+1:]
	if name == string(events.AuthorityName) {
		return "bus"
	}
	if r.Event != nil {
		if f, ok := r.Event.Extensions()[events.ExtActingFor].(string); ok && f != "" {
			name += " for " + f
		}
	}
	return termtext.Visible(name)
}

// quoted returns a text as a person would point at it; the line makes it visible.
func quoted(s string) string { return `"` + s + `"` }

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
