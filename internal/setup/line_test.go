package setup_test

import (
	"errors"
	"strings"
	"testing"

	"keryx/events"
	"keryx/internal/setup"
)

func TestParseLineTakesWhatIsDocumentedAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		want       events.SetupProgress
		ok         bool
	}{
		{"everything", `{"step":2,"total":5,"percent":40,"message":"fetch"}`, events.SetupProgress{Step: 2, Total: 5, Percent: 40, Message: "fetch"}, true},
		{"one field", `{"percent":7}`, events.SetupProgress{Percent: 7}, true},
		{"nothing", `{}`, events.SetupProgress{}, true},
		{"a message on several lines", `{"message":"a\nb\u001b[2J"}`, events.SetupProgress{Message: "a b [2J"}, true},
		{"a mistyped field", `{"procent":7}`, events.SetupProgress{}, false},
		{"a number out of range", `{"percent":101}`, events.SetupProgress{}, false},
		{"a negative step", `{"step":-1}`, events.SetupProgress{}, false},
		{"a text for a number", `{"step":"1"}`, events.SetupProgress{}, false},
		{"no JSON", `half way`, events.SetupProgress{}, false},
		{"two values", `{}{}`, events.SetupProgress{}, false},
		{"a long line", `{"message":"` + strings.Repeat("x", setup.MaxLine) + `"}`, events.SetupProgress{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := setup.ParseLine([]byte(c.line))
			if (err == nil) != c.ok || got != c.want || err != nil && !errors.Is(err, setup.ErrLine) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"step":2,"total":5,"percent":40,"message":"fetch"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		p, err := setup.ParseLine(line)
		if err == nil && (p.Percent < 0 || p.Percent > 100 || strings.ContainsAny(p.Message, "\n\x1b")) {
			t.Errorf("%q was read as %+v", line, p)
		}
	})
}
