package broker

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// serverLogger hands the server's lines to slog. What the server calls notices are its
// own start and stop, which say nothing to a user of the bus, so they are debug lines.
type serverLogger struct {
	l     *slog.Logger
	fatal atomic.Pointer[string] // the first reason for which the server gave up
}

func (s *serverLogger) log(level slog.Level, format string, v []any) {
	if s.l.Enabled(context.Background(), level) {
		s.l.Log(context.Background(), level, fmt.Sprintf(format, v...))
	}
}

func (s *serverLogger) Noticef(format string, v ...any) { s.log(slog.LevelDebug, format, v) }
func (s *serverLogger) Warnf(format string, v ...any)   { s.log(slog.LevelWarn, format, v) }
func (s *serverLogger) Errorf(format string, v ...any)  { s.log(slog.LevelError, format, v) }
func (s *serverLogger) Debugf(format string, v ...any)  { s.log(slog.LevelDebug, format, v) }
func (s *serverLogger) Tracef(format string, v ...any)  { s.log(slog.LevelDebug, format, v) }

// Fatalf does not end the process: the process belongs to whoever embeds the server,
// which returns the reason of a start that failed.
func (s *serverLogger) Fatalf(format string, v ...any) {
	why := fmt.Sprintf(format, v...)
	s.fatal.CompareAndSwap(nil, &why)
	s.log(slog.LevelError, "%s", []any{why})
}
