package run

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"keryx/internal/cli"
	"keryx/internal/observe"
)

// Log are the flags of a log.
type Log struct{ Level, Format string }

// Flags adds the flags, with a default level.
func (l *Log) Flags(cmd *cobra.Command, level string) {
	f := cmd.Flags()
	f.StringVar(&l.Level, "log-level", level, "least level that is logged: debug, info, warn, error")
	f.StringVar(&l.Format, "log-format", string(observe.FormatText), "how lines are logged: text, json")
	for name, values := range map[string][]string{"log-level": observe.Levels(), "log-format": observe.Formats()} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag was added just above
		}
	}
}

// Logger returns the logger that the flags ask for.
func (l *Log) Logger(w io.Writer) (*slog.Logger, error) {
	log, err := observe.NewLogger(w, observe.Format(l.Format), l.Level)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return log, nil
}
