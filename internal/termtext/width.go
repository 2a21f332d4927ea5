package termtext

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width returns how many cells s, as made by [Visible], takes on a terminal.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Ellipsis marks where [Cut] cut.
const Ellipsis = "…"

// Cut returns s, cut to at most n cells; what was cut ends with an [Ellipsis]. An n of 0
// or less cuts nothing.
func Cut(s string, n int) string {
	if n <= 0 || len(s) <= n || Width(s) <= n {
		return s
	}
	var b strings.Builder
	room := n - 1 // for the ellipsis
	for _, r := range s {
		if room -= cells(r); room < 0 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + Ellipsis
}
