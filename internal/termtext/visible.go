package termtext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns s as one line, with everything that is not plain text spelled out:
// \n, \t, \x1b, \u202e, and \xff for a byte that is not UTF-8. It is safe for concurrent
// use.
func Visible(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		writeVisible(&b, r, s[:n])
		s = s[n:]
	}
	return b.String()
}

func isPlain(s string) bool {
	for _, r := range s {
		if acts(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// acts reports whether a terminal or the eye would act on r: controls, line and
// paragraph separators, and format characters such as those that turn the direction of
// text. The two joiners are plain, since scripts and emoji need them.
func acts(r rune) bool {
	if r < utf8.RuneSelf {
		return r < 0x20 || r == 0x7f
	}
	const zwnj, zwj = 0x200c, 0x200d
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Cf) && r != zwnj && r != zwj
}

// writeVisible writes one character; raw are its bytes.
func writeVisible(b *strings.Builder, r rune, raw string) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case acts(r) && r <= 0xff:
		fmt.Fprintf(b, `\x%02x`, r)
	case acts(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteString(raw)
	}
}
