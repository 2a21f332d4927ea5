package replay

import (
	"strings"

	"keryx/events"
)

// tone is how a column stands out: a color sequence, or nothing.
type tone string

const (
	plain  tone = ""
	dim    tone = "\x1b[2m"
	bold   tone = "\x1b[1m"
	good   tone = "\x1b[32m"
	bad    tone = "\x1b[31m"
	warn   tone = "\x1b[33m"
	accent tone = "\x1b[36m"

	resetTone = "\x1b[0m"
)

// paint colors what is not padding.
func (t tone) paint(s string, color bool) string {
	core := strings.TrimRight(s, " ")
	if t == plain || !color || core == "" {
		return s
	}
	return string(t) + core + resetTone + s[len(core):]
}

func nounTone(t events.Type) tone {
	switch noun, _, _ := strings.Cut(t.Short(), "."); noun {
	case "session":
		return accent
	case "turn":
		return bold
	case "audit", "store":
		return warn
	}
	return plain
}

func outcomeTone(o events.Outcome) tone {
	switch o {
	case events.OutcomeCompleted:
		return good
	case events.OutcomeAborted:
		return warn
	}
	return bad
}
