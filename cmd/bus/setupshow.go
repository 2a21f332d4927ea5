package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/termtext"
)

func newSetupStatus(g *global) *cobra.Command {
	return &cobra.Command{
		Use:               "status [RUN|PACKAGE]",
		Short:             "Show where setups stand, newest first, or one in full",
		Example:           "  bus setup status\n  bus setup status hello",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: g.packageArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				if len(args) == 0 {
					return g.listSetups(ctx, cmd, c)
				}
				run, err := runOf(ctx, c, args[0])
				if err != nil {
					return err
				}
				v, err := c.Setup(ctx, run)
				if err != nil {
					return err
				}
				return g.printSetup(cmd.OutOrStdout(), v)
			})
		},
	}
}

func (g *global) listSetups(ctx context.Context, cmd *cobra.Command, c *client.Conn) error {
	runs, err := c.Setups(ctx, events.SetupList{})
	if err != nil {
		return err
	}
	if g.json {
		for _, r := range runs {
			if err := cli.PrintJSON(cmd.OutOrStdout(), r); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(cmd.OutOrStdout(), "RUN", "PACKAGE", "VERSION", "TARGET", "STATE", "PROGRESS", "PLANNED", "MESSAGE")
	for _, r := range runs {
		t.Row(string(r.Run), string(r.Key), r.Version, string(r.Target), string(r.State), fmt.Sprintf("%d %%", r.Progress.Percent),
			r.PlannedAt.Local().Format(time.DateTime), r.Message)
	}
	return t.Close()
}

func (g *global) printSetup(w io.Writer, v events.SetupView) error {
	if g.json {
		return cli.PrintJSON(w, v)
	}
	s := &sheet{}
	s.row("run", "%s", v.Run)
	s.row("package", "%s, version %s", v.Key, v.Version)
	s.row("target", "%s", v.Target)
	s.row("state", "%s", v.State)
	s.row("progress", "%s", progressText(v.Progress))
	if v.Message != "" {
		s.row("reason", "%s %s", v.Code, v.Message)
	}
	if v.Malformed > 0 {
		s.row("unreadable", "%d lines of progress", v.Malformed)
	}
	if e := v.End; e != nil {
		s.row("end", "exit %d %s after %s, cleanup %s", e.ExitCode, e.Signal, time.Duration(e.DurationMS)*time.Millisecond, e.Cleanup)
	}
	if v.Path != "" {
		s.row("installed", "%s", v.Path)
	}
	for _, a := range v.Asks {
		s.row("waiting", "session %s, epoch %s", a.Session, a.Epoch)
	}
	s.row("revision", "%s", v.Revision)
	return s.print(w)
}

func newSetupWatch(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "watch RUN|PACKAGE",
		Short: "Follow a setup: where it stands now, then each step, to its end",
		Long: `Follow a setup: where it stands now, then each step, to its end.

On a terminal a bar is drawn; elsewhere each change is a line. Ctrl-C ends the following
only. The exit code is 0 when the setup succeeded, and 1 when it failed or was cancelled.`,
		Example:           "  bus setup watch hello",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.packageArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				run, err := runOf(ctx, c, args[0])
				if err != nil {
					return err
				}
				return g.watchSetup(ctx, cmd, c, run)
			})
		},
	}
}

// watchSetup shows a run to its end. It fails unless the setup succeeded.
func (g *global) watchSetup(ctx context.Context, cmd *cobra.Command, c *client.Conn, run events.RunID) error {
	line := cli.NewProgress(cmd.ErrOrStderr())
	bar := cli.IsTerminal(cmd.ErrOrStderr())
	last, err := c.WatchSetup(ctx, run, func(now events.SetupSummary) bool {
		if g.json {
			err := cli.PrintJSON(cmd.OutOrStdout(), now)
			return err == nil
		}
		line.Show(standingOf(now, bar))
		return true
	})
	line.Done()
	if ctx.Err() != nil && !last.State.Over() {
		return fmt.Errorf("the setup goes on; 'bus setup watch %s' follows it, 'bus setup cancel %s' ends it: %w", run, run, context.Cause(ctx))
	}
	if err != nil {
		return err
	}
	if last.State != events.SetupStateSucceeded {
		return &cli.ExitError{Code: cli.ExitFailure, Err: events.Errorf(last.Code, "setup %s %s: %s", last.Run, last.State, last.Message)}
	}
	if g.json {
		return nil
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s installed in %s\n", last.Key, last.Version, last.Path)
	return err
}

const barCells = 24

// standingOf says where a run stands on one line, with a bar where it is drawn anew.
func standingOf(s events.SetupSummary, bar bool) string {
	text := fmt.Sprintf("%s %s", s.State, progressText(s.Progress))
	if !bar {
		return text
	}
	full := s.Progress.Percent * barCells / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barCells-full) + "] " + text
}

func progressText(p events.SetupProgress) string {
	text := fmt.Sprintf("%d %%", p.Percent)
	if p.Total > 0 {
		text += fmt.Sprintf(", step %d of %d", p.Step, p.Total)
	} else if p.Step > 0 {
		text += fmt.Sprintf(", step %d", p.Step)
	}
	if p.Message != "" {
		text += ": " + termtext.Visible(p.Message)
	}
	return text
}

func newSetupLog(g *global) *cobra.Command {
	return &cobra.Command{
		Use:               "log RUN|PACKAGE",
		Short:             "Show what a setup has written so far, standard output and error each to its own",
		Example:           "  bus setup log hello",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.packageArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				run, err := runOf(ctx, c, args[0])
				if err != nil {
					return err
				}
				return printSetupLog(ctx, cmd, c, run)
			})
		},
	}
}

// printSetupLog shows what the bus has of a run's output, which is named by the run's id
// in both places.
func printSetupLog(ctx context.Context, cmd *cobra.Command, c *client.Conn, run events.RunID) error {
	out := &streams{cmd: cmd, raw: !cli.IsTerminal(cmd.OutOrStdout())}
	q := events.Output{Session: events.SessionID(run), Exec: events.ExecID(run)}
	for {
		chunks, page, err := c.OutputPage(ctx, q)
		if err != nil {
			return err
		}
		for _, ch := range chunks {
			out.chunk(ch)
		}
		if page.Next == 0 || out.err != nil {
			return out.err
		}
		q.From = page.Next
	}
}
