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
)

func newSetup(g *global) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "setup",
		Short: "Set packages up: review, consent, run, follow, cancel",
		Long: `Set packages up: review, consent, run, follow, cancel.

A setup runs only when it is asked for, after somebody consented to exactly what was
reviewed: one byte, one argument or one file more, and it is refused. It runs in the
executor that has the target, in a process tree of its own. Until it has succeeded,
what was installed and enabled before is untouched. Its progress can be followed by any
number of viewers, also after a restart of the bus.

RUN|PACKAGE is the id of a run, or a package: then its newest run is meant.`,
	}, newSetupPlan(g), newSetupConsent(g), newSetupRun(g), newSetupCancel(g), newSetupStatus(g), newSetupWatch(g), newSetupLog(g))
}

// planFlags say where a setup is to run, and for whom.
type planFlags struct{ target, session string }

func (f *planFlags) flags(g *global, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.target, "target", "local", "target whose executor installs the package")
	cmd.Flags().StringVar(&f.session, "for", "", "a session, by id or name, that is told once the setup has succeeded")
	complete(cmd, "for", g.sessionFlag)
}

func (f *planFlags) plan(ctx context.Context, c *client.Conn, pack string) (events.SetupView, error) {
	a, err := c.PlanSetup(ctx, events.PlanSetup{Package: pack, Target: events.TargetName(f.target), To: f.session})
	if err != nil {
		return events.SetupView{}, err
	}
	return c.Setup(ctx, a.Run)
}

func newSetupPlan(g *global) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:               "plan PACKAGE",
		Short:             "Show what the setup of a package would run; it runs nothing",
		Example:           "  bus setup plan hello\n  bus setup consent 01M8R7H6FFT2NAEMYC5N1T5S0T --revision 44a21a93...",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.packageArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				v, err := f.plan(ctx, c, args[0])
				if err != nil {
					return err
				}
				return g.printPlan(cmd.OutOrStdout(), v)
			})
		},
	}
	f.flags(g, cmd)
	return cmd
}

// printPlan shows everything that consent is given to.
func (g *global) printPlan(w io.Writer, v events.SetupView) error {
	if g.json {
		return cli.PrintJSON(w, v)
	}
	p := v.Plan
	s := &sheet{}
	s.row("run", "%s", p.Run)
	s.row("package", "%s (%s %s)", p.Key, p.Name, p.Version)
	s.row("source", "%s", p.Source)
	s.row("directory", "%s", p.Dir)
	s.row("profile", "%s", p.Profile)
	s.row("target", "%s, of executor %s", p.Target, p.Executor)
	s.row("home", "%s", p.Home)
	s.row("command", "%s", arguments(p.Setup.Command))
	s.row("time limit", "%s", time.Duration(p.Setup.TimeoutMS)*time.Millisecond)
	if len(p.Setup.Needs) > 0 {
		s.row("needs", "%s", strings.Join(p.Setup.Needs, ", "))
	}
	s.row("revision", "%s", p.Revision)
	s.row("state", "%s", v.State)
	if err := s.print(w); err != nil {
		return err
	}
	t := cli.NewTable(w, "FILE", "BYTES", "SHA-256")
	for _, f := range p.Files {
		name := f.Path
		if f.Executable {
			name += "*"
		}
		t.Row(name, fmt.Sprint(f.Bytes), f.SHA256)
	}
	return t.Close()
}

// arguments shows an argument list so that its parts can be told apart.
func arguments(argv []string) string {
	each := make([]string, 0, len(argv))
	for _, a := range argv {
		if a == "" || strings.ContainsAny(a, " '\"\\\t\n") {
			a = fmt.Sprintf("%q", a)
		}
		each = append(each, a)
	}
	return strings.Join(each, " ")
}

func newSetupConsent(g *global) *cobra.Command {
	var revision string
	cmd := &cobra.Command{
		Use:   "consent RUN --revision R",
		Short: "Consent to exactly the revision that was reviewed",
		Long: `Consent to exactly the revision that was reviewed. It runs nothing.

The consent serves this run and, while the revision stays the same, its retries. A setup
that succeeds uses it up.`,
		Example: "  bus setup consent 01M8R7H6FFT2NAEMYC5N1T5S0T --revision 44a21a93d9e3a976f8158ffb16f9046053d603a4222d75c55092ba5025030f8c",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if revision == "" {
				return cli.Usagef("--revision is needed; 'bus setup plan' shows it")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				a, err := c.ConsentSetup(ctx, events.ConsentSetup{Run: events.RunID(args[0]), Revision: events.Revision(revision)})
				if err != nil {
					return err
				}
				return g.printSetupAnswer(cmd, a)
			})
		},
	}
	cmd.Flags().StringVar(&revision, "revision", "", "the revision that 'bus setup plan' showed (required)")
	return cmd
}

func (g *global) printSetupAnswer(cmd *cobra.Command, a events.SetupAnswer) error {
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), a)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", a.Run, a.State)
	return err
}

func newSetupCancel(g *global) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "cancel RUN|PACKAGE",
		Short:             "Cancel a setup; its whole process tree is ended",
		Example:           "  bus setup cancel hello --reason 'wrong machine'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.packageArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				run, err := runOf(ctx, c, args[0])
				if err != nil {
					return err
				}
				a, err := c.CancelSetup(ctx, run, reason)
				if err != nil {
					return err
				}
				return g.printSetupAnswer(cmd, a)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

// runOf returns the run that is meant by its id, or by a package.
func runOf(ctx context.Context, c *client.Conn, ref string) (events.RunID, error) {
	if events.IsULID(ref) {
		return events.RunID(ref), nil
	}
	runs, err := c.Setups(ctx, events.SetupList{Package: ref, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return "", events.Errorf(events.CodeUnknownRun, "package %q was never set up", ref)
	}
	return runs[0].Run, nil
}
