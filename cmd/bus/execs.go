package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/termtext"
)

func newPs(g *global) *cobra.Command {
	return &cobra.Command{
		Use:               "ps [ID|KEY]",
		Short:             "List the execs that run, of one session or of all",
		Example:           "  bus ps\n  bus ps cli:local --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				views, err := execViews(ctx, c, args)
				if err != nil {
					return err
				}
				return g.printExecs(cmd, views)
			})
		},
	}
}

// sessionExecs is a session with what runs for it.
type sessionExecs struct {
	Session events.SessionID `json:"session"`
	events.ExecView
}

func execViews(ctx context.Context, c *client.Conn, of []string) (out []sessionExecs, err error) {
	if len(of) == 0 {
		for s, err := range c.Sessions(ctx, events.SessionList{}) {
			if err != nil {
				return nil, err
			}
			of = append(of, string(s.Session))
		}
	}
	for _, to := range of {
		v, err := c.Show(ctx, to)
		if err != nil {
			return nil, err
		}
		for _, e := range v.Execs {
			out = append(out, sessionExecs{v.Session, e})
		}
	}
	return out, nil
}

func (g *global) printExecs(cmd *cobra.Command, all []sessionExecs) error {
	if g.json {
		for _, e := range all {
			if err := cli.PrintJSON(cmd.OutOrStdout(), e); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(cmd.OutOrStdout(), "EXEC", "SESSION", "TARGET", "EXECUTOR", "STATE", "PID", "COMMAND")
	for _, e := range all {
		state, pid := "requested", ""
		if e.Started {
			state, pid = "running", fmt.Sprint(e.PID)
		}
		t.Row(string(e.Exec), string(e.Session), string(e.Target), string(e.Executor), state, pid,
			termtext.Cut(strings.Join(e.Argv, " "), 80))
	}
	return t.Close()
}

func newKill(g *global) *cobra.Command {
	var grace time.Duration
	cmd := &cobra.Command{
		Use:               "kill ID|KEY EXEC",
		Short:             "Stop an exec: TERM, grace, KILL, the whole tree",
		Example:           "  bus kill cli:local 01M8QTRSQ9PTFF81598C010KJM --grace 1s",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: g.execArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			stop := events.StopExec{Exec: events.ExecID(args[1])}
			if grace < 0 {
				return cli.Usagef("--grace is not negative")
			}
			if cmd.Flags().Changed("grace") {
				ms := grace.Milliseconds()
				stop.GraceMS = &ms
			}
			return g.running(cmd, nobodyRuns, func(ctx context.Context, c *client.Conn) error {
				v, err := c.Show(ctx, args[0])
				if err != nil {
					return err
				}
				stop.Session = v.Session
				a, err := c.StopExec(ctx, stop)
				if err != nil {
					return err
				}
				return g.printExec(cmd, a)
			})
		},
	}
	cmd.Flags().DurationVar(&grace, "grace", 5*time.Second, "time from TERM to KILL; 0: KILL at once; default: the exec's own")
	return cmd
}

// execArgs completes a session and one of its execs that run.
func (g *global) execArgs(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return g.sessionArg(cmd, args, prefix)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeWithin)
	defer cancel()
	var found []string
	err := g.bus.With(ctx, quiet(), func(c *client.Conn) error {
		all, err := execViews(ctx, c, args)
		for _, e := range all {
			if strings.HasPrefix(string(e.Exec), prefix) {
				found = append(found, string(e.Exec)+"\t"+termtext.Cut(strings.Join(e.Argv, " "), 40))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
