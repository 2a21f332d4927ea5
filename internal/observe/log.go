package observe

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Format is how a log is written.
type Format string

// The formats of a log.
const (
	FormatText Format = "text"
	FormatJSON Format = "json"
)

// ErrBadFormat is wrapped by errors about an unknown format or level.
var ErrBadFormat = errors.New("unknown log setting")

// Formats lists the formats, for help and completion.
func Formats() []string { return []string{string(FormatText), string(FormatJSON)} }

// Levels lists the levels, for help and completion.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// NewLogger returns a logger that writes lines to w, at and above a level of [Levels].
// The error wraps [ErrBadFormat].
func NewLogger(w io.Writer, format Format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q is not one of %v: %w", level, Levels(), ErrBadFormat)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case FormatText:
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log format %q is not one of %v: %w", format, Formats(), ErrBadFormat)
}
