package split_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"keryx/internal/gateway/split"
)

// markup escapes as a chat platform with a markup of its own does.
func markup(s string) string {
	return strings.NewReplacer("!", `\!`, ".", `\.`, "-", `\-`, "*", `\*`, "_", `\_`).Replace(s)
}

// tester is what both kinds of tests have.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checked(t tester, text string, l split.Limit) []split.Part {
	t.Helper()
	parts := split.Text(text, l)
	for i, p := range parts {
		if n := l.Length(p.Text); n > l.Max {
			t.Fatalf("part %d has %d of %d %s", i, n, l.Max, l.Unit)
		}
		if p.Text == "" {
			t.Fatalf("part %d is empty", i)
		}
		if utf8.ValidString(text) && !utf8.ValidString(p.Text) {
			t.Fatalf("part %d cuts a code point", i)
		}
	}
	if got := split.Join(parts); got != text {
		t.Fatalf("joined %q, want %q", got, text)
	}
	return parts
}

func TestCase_I5_TextIsCutInThePlatformsOwnUnitAfterEscaping(t *testing.T) {
	t.Parallel()
	code := "Here:\n```go\n" + strings.Repeat("x := 1 // line\n", 330) + "```\nDone."
	tests := []struct {
		name  string
		text  string
		limit split.Limit
		parts int
	}{
		{"4,096 exclamation marks that are escaped", strings.Repeat("!", 4096), split.Limit{Max: 4096, Unit: split.UTF16, Escape: markup}, 2},
		{"2,100 emoji outside the BMP", strings.Repeat("😀", 2100), split.Limit{Max: 4096, Unit: split.UTF16}, 2},
		{"a fenced block of 5,000 characters", code, split.Limit{Max: 2000, Unit: split.Runes}, 3},
		{"one word of 3,000 characters", strings.Repeat("w", 3000), split.Limit{Max: 2000, Unit: split.Runes}, 2},
		{"a text that fits", "hello", split.Limit{Max: 64, Unit: split.Bytes}, 1},
		{"no text", "", split.Limit{Max: 64, Unit: split.Bytes}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if parts := checked(t, tt.text, tt.limit); len(parts) != tt.parts {
				t.Errorf("cut into %d parts, want %d", len(parts), tt.parts)
			}
		})
	}
}

func TestAFenceThatIsCutIsClosedAndOpenedAgain(t *testing.T) {
	t.Parallel()
	text := "Look:\n```go\n" + strings.Repeat("x := 1\n", 50) + "```\nThat is all."
	parts := checked(t, text, split.Limit{Max: 100, Unit: split.Runes})
	for i, p := range parts {
		if marks := strings.Count(p.Text, "```"); marks%2 != 0 {
			t.Errorf("part %d has %d marks:\n%s", i, marks, p.Text)
		}
		if i > 0 && i < len(parts)-1 && !strings.HasPrefix(p.Text, "```go\n") {
			t.Errorf("part %d does not open with its language:\n%s", i, p.Text)
		}
	}
}

func TestAnEmojiOfSeveralCodePointsIsNotCut(t *testing.T) {
	t.Parallel()
	family := "👩‍👩‍👧‍👦"
	for _, p := range checked(t, strings.Repeat(family, 40), split.Limit{Max: 64, Unit: split.UTF16}) {
		if strings.ReplaceAll(p.Text, family, "") != "" {
			t.Errorf("%q has half a family", p.Text)
		}
	}
}

func TestWordsAndLinesStayWholeWhereTheyCan(t *testing.T) {
	t.Parallel()
	for _, p := range checked(t, strings.Repeat("seven letters\n", 30), split.Limit{Max: 64, Unit: split.Bytes}) {
		if !strings.HasSuffix(p.Text, "letters\n") {
			t.Errorf("%q ends inside a line", p.Text)
		}
	}
}

func TestALimitThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for _, l := range []split.Limit{{}, {Max: 63, Unit: split.Bytes}, {Max: 100}, {Max: 100, Unit: "words"}, {Max: -1, Unit: split.Runes}} {
		if err := l.Validate(); !errors.Is(err, split.ErrBadLimit) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func drawLimit(t *rapid.T) split.Limit {
	l := split.Limit{
		Max:  rapid.IntRange(64, 300).Draw(t, "max"),
		Unit: rapid.SampledFrom([]split.Unit{split.Bytes, split.Runes, split.UTF16}).Draw(t, "unit"),
	}
	if rapid.Bool().Draw(t, "escaped") {
		l.Escape = markup
	}
	return l
}

func TestPartsFitAndJoinToTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{"```\n", "```go\n", "~~~\n", "````\n", "\n", "\n\n", " ", "!", "😀", "👩‍👩‍👧‍👦", "é", "`", "~~~ a long language indeed, longer than any\n"}),
			rapid.StringN(0, 40, -1),
		), 0, 80).Draw(t, "pieces")
		checked(t, strings.Join(pieces, ""), drawLimit(t))
	})
}

func FuzzText(f *testing.F) {
	f.Add("```go\nx\n```\n", 64, uint8(0))
	f.Add(strings.Repeat("😀!", 100), 65, uint8(1))
	f.Add("~~~ "+strings.Repeat("i", 100)+"\n\xff\xfe", 70, uint8(2))
	f.Fuzz(func(t *testing.T, text string, limit int, unit uint8) {
		l := split.Limit{Max: limit, Unit: []split.Unit{split.Bytes, split.Runes, split.UTF16}[unit%3], Escape: markup}
		if l.Validate() != nil || len(text) > 1<<14 {
			return
		}
		checked(t, text, l)
	})
}
