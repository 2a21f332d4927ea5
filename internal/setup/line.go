package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"keryx/events"
)

const (
	// MaxLine bounds a line of progress, in bytes.
	MaxLine = 4096
	// maxMessage bounds the message in it, in bytes.
	maxMessage = 512
	// maxSteps bounds the numbers of steps.
	maxSteps = 1_000_000
)

// ErrLine is wrapped by errors about a line of progress.
var ErrLine = errors.New("malformed line of progress")

// ParseLine reads one line that a setup wrote to its descriptor 3: a JSON object with
// step, percent, message and total, each of which may be absent. Other fields are
// refused, so that a mistyped one is noticed.
func ParseLine(line []byte) (events.SetupProgress, error) {
	var p events.SetupProgress
	if len(line) > MaxLine {
		return p, fmt.Errorf("%w: longer than %d bytes", ErrLine, MaxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return events.SetupProgress{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	if d.More() {
		return events.SetupProgress{}, fmt.Errorf("%w: more than one value", ErrLine)
	}
	if p.Step < 0 || p.Step > maxSteps || p.Total < 0 || p.Total > maxSteps || p.Percent < 0 || p.Percent > 100 {
		return events.SetupProgress{}, fmt.Errorf("%w: a number is out of range", ErrLine)
	}
	p.Message = oneLine(p.Message)
	return p, nil
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
