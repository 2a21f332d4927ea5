package split

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Part is one message.
type Part struct {
	// Text is what to say, not escaped.
	Text string
	// opened and closed are how many bytes at its beginning and end were added to keep a
	// fence of code whole.
	opened, closed int
}

// Join gives back the text that parts were cut from.
func Join(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text[p.opened : len(p.Text)-p.closed])
	}
	return b.String()
}

// Text cuts a text to a limit, which has to be valid. An empty text has no parts.
func Text(text string, l Limit) []Part {
	var out []Part
	open := fence{}
	for text != "" {
		p, rest, next := cut(text, l, open)
		out = append(out, p)
		text, open = rest, next
	}
	return out
}

// cut takes the first part off a text that begins inside of open.
func cut(text string, l Limit, open fence) (p Part, rest string, next fence) {
	head := open.opening()
	if whole := head + text; l.Length(whole) <= l.Max {
		return Part{Text: whole, opened: len(head)}, "", fence{}
	}
	marked := func(n int) (Part, fence) {
		state := open.after(text[:n])
		tail := state.closing(text[:n])
		return Part{Text: head + text[:n] + tail, opened: len(head), closed: len(tail)}, state
	}
	excess := func(n int) int {
		p, _ := marked(n)
		return l.Length(p.Text) - l.Max
	}
	n := better(text, longest(text, l, excess), excess)
	p, next = marked(n)
	if l.Length(p.Text) > l.Max || next.tooLong(l) { // a fence's own marks do not fit: it is cut without them
		n = longest(text, l, func(n int) int { return l.Length(text[:n]) - l.Max })
		return Part{Text: text[:n]}, text[n:], fence{}
	}
	return p, text[n:], next
}

func firstRune(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// longest is how many bytes fit at most, ending behind a whole grapheme cluster; if not
// even the first fits, behind a code point. excess says how much too long a beginning is.
func longest(text string, l Limit, excess func(int) int) int {
	ends := clusterEnds(text, l)
	if excess(ends[0]) > 0 {
		return inside(text[:ends[0]], excess)
	}
	i := len(ends) - 1
	for i > 0 {
		over := excess(ends[i])
		if over <= 0 {
			break
		}
		target := ends[i] - over // a unit has a byte at least
		for i--; i > 0 && ends[i] > target; i-- {
		}
	}
	return ends[i]
}

// clusterEnds are the ends of the clusters that may fit, the first in any case.
func clusterEnds(text string, l Limit) []int {
	var ends []int
	at, state, count := 0, -1, 0
	for text != "" {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		at += len(cluster)
		if count += l.Length(cluster); count > l.Max && len(ends) > 0 {
			break
		}
		ends = append(ends, at)
	}
	return ends
}

// inside is how many whole code points of one cluster fit, at least one.
func inside(cluster string, excess func(int) int) int {
	best := 0
	for i := range cluster {
		if i > 0 && excess(i) <= 0 {
			best = i
		}
	}
	return max(best, firstRune(cluster))
}

// better looks for a nicer place to cut in the last half of what fits.
func better(text string, n int, excess func(int) int) int {
	for _, mark := range []string{"\n\n", "\n"} {
		if i := strings.LastIndex(text[:n], mark); i >= n/2 && excess(i+len(mark)) <= 0 {
			return i + len(mark)
		}
	}
	if i := strings.LastIndexFunc(text[:n], unicode.IsSpace); i >= n/2 {
		if end := i + firstRune(text[i:]); excess(end) <= 0 {
			return end
		}
	}
	return n
}
