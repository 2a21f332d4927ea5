package main

import (
	"bufio"
	"context"
	"errors"
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
