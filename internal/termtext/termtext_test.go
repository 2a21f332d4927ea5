package termtext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"keryx/internal/termtext"
)

func TestVisibleSpellsOutWhatATerminalWouldActOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain text stays", "héllo wörld 日本", "héllo wörld 日本"},
		{"newline and tab become visible", "a\nb\tc\r", `a\nb\tc\r`},
		{"an escape sequence is defused", "\x1b]0;title\x07", `\x1b]0;title\x07`},
		{"eight-bit controls too", "a\u009b31m", `a\x9b31m`},
		{"turning the direction of text is shown", "a\u202eb", `a\u202eb`},
		{"line separators", "a\u2028b", `a\u2028b`},
		{"broken UTF-8", "a\xffb", `a\xffb`},
		{"a true replacement character stays", "a\ufffdb", "a\ufffdb"},
		{"joined emoji stay whole", "\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"},
		{"delete and null", "\x7f\x00", `\x7f\x00`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := termtext.Visible(c.in); got != c.want {
				t.Errorf("Visible(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestCutCountsCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"hello", 5, "hello"},
		{"hello!", 5, "hell…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"anything", 0, "anything"},
		{"ab", 1, "…"},
	} {
		got := termtext.Cut(c.in, c.n)
		if got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
		if c.n > 0 && termtext.Width(got) > c.n {
			t.Errorf("Cut(%q, %d) takes %d cells", c.in, c.n, termtext.Width(got))
		}
	}
}

func filtered(t *testing.T, pieces ...string) string {
	t.Helper()
	var b strings.Builder
	f := termtext.NewFilter(&b)
	for _, p := range pieces {
		if n, err := f.Write([]byte(p)); err != nil || n != len(p) {
			t.Fatalf("Write(%q) = %d, %v", p, n, err)
		}
	}
	if err := f.Flush(); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	return b.String()
}

func TestFilterPassesColorsAndDefusesTheRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"lines and tabs pass", []string{"a\tb\nc"}, "a\tb\nc"},
		{"carriage return before newline goes", []string{"a\r", "\nb"}, "a\nb"},
		{"a lone carriage return is shown", []string{"10%\r20%"}, `10%\r20%`},
		{"a color passes and is taken back", []string{"\x1b[31mred"}, "\x1b[31mred\x1b[0m"},
		{"a color that the text takes back itself", []string{"\x1b[1;31mred\x1b[0m"}, "\x1b[1;31mred\x1b[0m"},
		{"a color split over pieces", []string{"\x1b", "[3", "1m", "x\x1b[m"}, "\x1b[31mx\x1b[m"},
		{"a cursor movement is shown", []string{"\x1b[2J\x1b[H"}, `\x1b[2J\x1b[H`},
		{"a title is shown", []string{"\x1b]0;x\x07"}, `\x1b]0;x\x07`},
		{"an unfinished sequence is shown", []string{"\x1b[31"}, `\x1b[31`},
		{"a question to the terminal is shown", []string{"\x1b[c"}, `\x1b[c`},
		{"private modes are not colors", []string{"\x1b[?25m"}, `\x1b[?25m`},
		{"a character split over pieces", []string{"\xc3", "\xa9"}, "é"},
		{"a broken character", []string{"\xc3", "x"}, `\xc3x`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := filtered(t, c.pieces...); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFilterHoldsBackNoMoreThanASequence(t *testing.T) {
	t.Parallel()
	long := "\x1b[" + strings.Repeat("1;", 200) + "m"
	if got := filtered(t, long); strings.Contains(got, "\x1b") {
		t.Errorf("an endless color sequence passed: %q", got)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("a\x1b[31mb\x1b[2J", 3)
	f.Add("\x1b[\x1b[0m\r\n\xc3", 1)
	f.Fuzz(func(t *testing.T, s string, at int) {
		cut := 0
		if len(s) > 0 {
			cut = int(uint(at) % uint(len(s)))
		}
		whole, split := filtered(t, s), filtered(t, s[:cut], s[cut:])
		if whole != split {
			t.Errorf("split at %d gives %q, whole %q", cut, split, whole)
		}
		for i := range len(whole) {
			if c := whole[i]; c == 0x1b && !colorAt(whole[i:]) || c < 0x20 && c != 0x1b && c != '\n' && c != '\t' || c == 0x7f {
				t.Errorf("control %#x passed at %d of %q", c, i, whole)
			}
		}
		if !utf8.ValidString(whole) {
			t.Errorf("%q is not UTF-8", whole)
		}
	})
}

// colorAt reports whether s begins with a color sequence, by another way than Filter's.
func colorAt(s string) bool {
	body, _, ok := strings.Cut(s, "m")
	return ok && strings.HasPrefix(body, "\x1b[") && strings.Trim(body[2:], "0123456789;:") == ""
}
