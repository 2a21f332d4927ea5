package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

// runFlags are those of a run.
type runFlags struct {
	planFlags
	revision string
	detach   bool
}

func newSetupRun(g *global) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run RUN|PACKAGE",
		Short: "Run a setup, after consent, and follow it to its end",
		Long: `Run a setup, after consent, and follow it to its end.

With a package, it is planned first and shown; consent is asked for on a terminal, or
given beforehand: --revision is the revision that was reviewed, and nothing else is run.
Ctrl-C ends the following only: the setup goes on, and can be watched again or cancelled.

The exit code is 0 when the setup succeeded, and 1 when it failed or was cancelled.`,
		Example:           "  bus setup run hello\n  bus setup run hello --for cli:local",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.packageArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				v, err := f.planned(ctx, g, cmd, c, args[0])
				if err != nil {
					return err
				}
				if _, err := c.RunSetup(ctx, v.Plan.Run, v.Plan.Revision); err != nil {
					return err
				}
				if f.detach {
					return g.printSetupAnswer(cmd, events.SetupAnswer{Run: v.Plan.Run, State: events.SetupStateRunning, Revision: v.Plan.Revision})
				}
				return g.watchSetup(ctx, cmd, c, v.Plan.Run)
			})
		},
	}
	f.flags(g, cmd)
	cmd.Flags().StringVar(&f.revision, "revision", "", "consent to this revision, which was reviewed before, without asking")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "do not follow the run")
	return cmd
}

// planned returns a run that was consented to.
func (f *runFlags) planned(ctx context.Context, g *global, cmd *cobra.Command, c *client.Conn, ref string) (v events.SetupView, err error) {
	if events.IsULID(ref) {
		v, err = c.Setup(ctx, events.RunID(ref))
	} else {
		v, err = f.plan(ctx, c, ref)
	}
	if err != nil || v.State != events.SetupStatePlanned {
		return v, err
	}
	revision := events.Revision(f.revision)
	if revision == "" {
		if revision, err = g.askConsent(cmd, v); err != nil {
			return v, err
		}
	}
	_, err = c.ConsentSetup(ctx, events.ConsentSetup{Run: v.Plan.Run, Revision: revision})
	return v, err
}

// askConsent shows the plan and asks, where there is somebody to ask.
func (g *global) askConsent(cmd *cobra.Command, v events.SetupView) (events.Revision, error) {
	if !cli.IsTerminal(cmd.InOrStdin()) || g.json {
		return "", events.Errorf(events.CodeNoConsent,
			"nobody is here to be asked: review it with 'bus setup plan %s' and pass its revision with --revision", v.Plan.Key)
	}
	if err := g.printPlan(cmd.ErrOrStderr(), v); err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(cmd.ErrOrStderr(), "Run this? [y/N] "); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return "", events.Errorf(events.CodeNoConsent, "not consented; run %s waits", v.Plan.Run)
	}
	return v.Plan.Revision, nil
}
