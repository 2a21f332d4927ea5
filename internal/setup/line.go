package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"keryx/events"
	"keryx/schemas"
)

const (
	// MaxLine bounds a line of progress, in bytes.
	MaxLine = 4096
	// maxMessage bounds the message in it, in bytes.
	maxMessage = 512
)

// ErrLine is wrapped by errors about a line of progress.
var ErrLine = errors.New("malformed line of progress")

// ParseLine reads one line that a setup wrote to its descriptor 3: a JSON object that fits
// the schema keryx.format.progress.v1. Other fields are refused, so that a mistyped one is
// noticed.
func ParseLine(line []byte) (events.SetupProgress, error) {
	if len(line) > MaxLine {
		return events.SetupProgress{}, fmt.Errorf("%w: longer than %d bytes", ErrLine, MaxLine)
	}
	if err := schemas.Validate(events.TypeProgressLine, line); err != nil {
		return events.SetupProgress{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	var p events.ProgressLine
	if err := json.Unmarshal(line, &p); err != nil {
		return events.SetupProgress{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	return events.SetupProgress{Step: p.Step, Total: p.Total, Percent: p.Percent, Message: oneLine(p.Message)}, nil
}

// oneLine makes a message fit for one line of any viewer.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if isControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
	for len(s) > maxMessage {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return strings.TrimSpace(s)
}
