package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"keryx/events"
)

// LineError says why a line of input cannot be a message. Reading goes on behind it.
type LineError struct {
	// Line counts from 1.
	Line   int
	Reason string
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d is not sent: %s", e.Line, e.Reason) }

// lines reads input line by line, each at most [events.MaxBody] bytes.
type lines struct {
	r *bufio.Reader
	n int
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line without its end, [io.EOF] after the last, and a
// [*LineError] for a line that is too long or not UTF-8, which it has skipped.
func (l *lines) next() (string, error) {
	line, tooLong, err := l.read()
	if err != nil {
		return "", err
	}
	l.n++
	switch {
	case tooLong:
		return "", &LineError{Line: l.n, Reason: fmt.Sprintf("it is longer than %d bytes", events.MaxBody)}
	case !utf8.Valid(line):
		return "", &LineError{Line: l.n, Reason: "it is not UTF-8"}
	}
	return string(line), nil
}

// read reads up to a newline, keeping at most what a message may have.
func (l *lines) read() (line []byte, tooLong bool, err error) {
	any := false
	for {
		part, err := l.r.ReadSlice('\n')
		any = any || len(part) > 0
		if !tooLong {
			line = append(line, part...)
			tooLong = len(trimEnd(line)) > events.MaxBody
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && any:
			return trimEnd(line), tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, false, err
		}
	}
}

// trimEnd takes away \n or \r\n.
func trimEnd(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
		if n > 1 && b[n-2] == '\r' {
			b = b[:n-2]
		}
	}
	return b
}
