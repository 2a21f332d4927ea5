package broker

import (
	"context"
	"fmt"
	"log/slog"
)

// serverLogger hands the server's lines to slog. What the server calls notices are its
// own start and stop, which say nothing to a user of the bus, so they are debug lines.
type serverLogger struct{ l *slog.Logger }

func (s serverLogger) log(level slog.Level, format string, v []any) {
	if s.l.Enabled(context.Background(), level) {
		s.l.Log(context.Background(), level, fmt.Sprintf(format, v...))
	}
}

func (s serverLogger) Noticef(format string, v ...any) { s.log(slog.LevelDebug, format, v) }
func (s serverLogger) Warnf(format string, v ...any)   { s.log(slog.LevelWarn, format, v) }
func (s serverLogger) Errorf(format string, v ...any)  { s.log(slog.LevelError, format, v) }
func (s serverLogger) Debugf(format string, v ...any)  { s.log(slog.LevelDebug, format, v) }
func (s serverLogger) Tracef(format string, v ...any)  { s.log(slog.LevelDebug, format, v) }

// Fatalf does not end the process: the process belongs to whoever embeds the server,
// which sees that it did not become ready.
func (s serverLogger) Fatalf(format string, v ...any) { s.log(slog.LevelError, format, v) }
