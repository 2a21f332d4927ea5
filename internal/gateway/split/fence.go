package split

import "strings"

// fence is the fence of code that a text is inside of; empty: none.
type fence struct {
	marks string // the backticks or tildes that opened it
	info  string // the language behind them
}

// after is the fence that is open behind a piece of text which begins inside of f.
func (f fence) after(piece string) fence {
	for line := range strings.Lines(piece) {
		whole := strings.HasSuffix(line, "\n")
		line = strings.TrimRight(line, "\r\n")
		marks, rest := marksOf(line)
		switch {
		case marks == "":
		case f.marks == "":
			if whole { // its language may not be whole otherwise
				f = fence{marks: marks, info: strings.TrimSpace(rest)}
			}
		case marks[0] == f.marks[0] && len(marks) >= len(f.marks) && strings.TrimSpace(rest) == "":
			f = fence{}
		}
	}
	return f
}

// marksOf returns the run of backticks or tildes that a fence's line begins with.
func marksOf(line string) (marks, rest string) {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 || trimmed == "" || trimmed[0] != '`' && trimmed[0] != '~' {
		return "", ""
	}
	rest = strings.TrimLeft(trimmed, trimmed[:1])
	marks = trimmed[:len(trimmed)-len(rest)]
	if len(marks) < 3 || marks[0] == '`' && strings.Contains(rest, "`") {
		return "", ""
	}
	return marks, rest
}

// opening is what opens it again.
func (f fence) opening() string {
	if f.marks == "" {
		return ""
	}
	return f.marks + f.info + "\n"
}

// closing is what closes it behind a piece.
func (f fence) closing(piece string) string {
	if f.marks == "" {
		return ""
	}
	if strings.HasSuffix(piece, "\n") {
		return f.marks
	}
	return "\n" + f.marks
}

// tooLong reports whether its marks leave hardly any room.
func (f fence) tooLong(l Limit) bool {
	return f.marks != "" && l.Length(f.opening()+"\n"+f.marks) > l.Max/2
}
