package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/targetfile"
	"keryx/internal/termtext"
)

func newTargets(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "List the targets of a profile, who runs them, and whether they can be used",
		Long: `List the targets of a profile, who runs them, and whether they can be used.

HEALTH is "ready", "away" while the executor does not hold the target's lease, or the code
of what keeps the target from being used. What follows "+" does not: "+config" says that a
changed file is not in force, "+unenforced" that limits are not enforced. The reasons are
below the table, and in --json.`,
		Example: "  bus targets\n  bus targets --json\n  bus targets check targets/*.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				all, err := c.Targets(ctx)
				if err != nil {
					return err
				}
				return g.printTargets(cmd, all)
			})
		},
	}
	cmd.AddCommand(newTargetsCheck(g), newTargetsDetach(g))
	return cmd
}

// targetLine is a registered target and what is known of it.
type targetLine struct {
	events.TargetRegistered
	State events.TargetState `json:"state"`
}

// targetLines pairs registrations and states; an authority of before told no states.
func targetLines(all events.Targets) []targetLine {
	out := make([]targetLine, len(all.Targets))
	for i, t := range all.Targets {
		out[i] = targetLine{t, events.TargetState{Name: t.Spec.Name, Live: true}}
		if i < len(all.States) {
			out[i].State = all.States[i]
		}
	}
	return out
}

func (g *global) printTargets(cmd *cobra.Command, all events.Targets) error {
	lines := targetLines(all)
	if g.json {
		for _, t := range lines {
			if err := cli.PrintJSON(cmd.OutOrStdout(), t); err != nil {
				return err
			}
		}
		return nil
	}
	table := cli.NewTable(cmd.OutOrStdout(), "TARGET", "KIND", "GENERATION", "EXECUTOR", "HEALTH", "HOLDER", "LIMITS", "USER", "CWD")
	for _, t := range lines {
		table.Row(string(t.Spec.Name), t.Spec.Kind, fmt.Sprint(t.Generation), string(t.Executor), t.health(), t.holder(),
			limits(t.Spec.Limits), t.Spec.User, t.Spec.Cwd)
	}
	if err := table.Close(); err != nil {
		return err
	}
	return printReasons(cmd, lines)
}

// printReasons says why targets are not as they should be.
func printReasons(cmd *cobra.Command, lines []targetLine) error {
	for _, t := range lines {
		for _, e := range []*events.Error{t.Fault, t.ConfigFault} {
			if e == nil {
				continue
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", t.Spec.Name, termtext.Visible(e.Error())); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
	}
	return nil
}

func (t targetLine) health() string {
	text := "ready"
	switch {
	case !t.State.Live:
		text = "away"
	case t.Fault != nil:
		text = string(t.Fault.Code)
	}
	if t.ConfigFault != nil {
		text += " +config"
	}
	if len(t.LimitsUnenforced) > 0 {
		text += " +unenforced"
	}
	return text
}

func (t targetLine) holder() string {
	switch {
	case t.State.Holder != nil:
		return string(t.State.Holder.Session)
	case t.Spec.Exclusive:
		return "free"
	case t.Spec.PerSession:
		return "per session"
	}
	return "shared"
}

func limits(l *events.TargetLimits) string {
	if l == nil {
		return ""
	}
	var parts []string
	if l.CPUMilli > 0 {
		parts = append(parts, fmt.Sprintf("cpu %g", float64(l.CPUMilli)/1000))
	}
	if l.MemoryBytes > 0 {
		parts = append(parts, fmt.Sprintf("memory %d", l.MemoryBytes))
	}
	if l.PIDs > 0 {
		parts = append(parts, fmt.Sprintf("pids %d", l.PIDs))
	}
	return strings.Join(parts, ", ")
}

func newTargetsCheck(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Check target files, without a bus",
		Long: `Check target files, without a bus.

Each is read as an executor on this machine would read it. What is wrong is named by file,
line and column. The exit code is 0 if nothing is, else 1.`,
		Example: "  bus targets check ~/targets/*.yaml",
		Args:    cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error { return g.checkTargets(cmd, args) },
	}
}

// checkedFile is what was found in a target file.
type checkedFile struct {
	File   string             `json:"file"`
	Target *events.TargetSpec `json:"target,omitempty"`
	Error  string             `json:"error,omitempty"`
}

func (g *global) checkTargets(cmd *cobra.Command, paths []string) error {
	wrong := 0
	owners := map[events.TargetName]string{}
	for _, path := range paths {
		c := checkTarget(path, owners)
		if c.Error != "" {
			wrong++
		}
		if err := g.printChecked(cmd, c); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return &cli.ExitError{Code: cli.ExitFailure} // each was told
	}
	return nil
}

func checkTarget(path string, owners map[events.TargetName]string) checkedFile {
	spec, err := targetfile.Read(path)
	if err != nil {
		return checkedFile{File: path, Error: err.Error()}
	}
	if other, taken := owners[spec.Name]; taken {
		return checkedFile{File: path, Error: fmt.Sprintf("%s: target %q is declared by %s already", path, spec.Name, other)}
	}
	owners[spec.Name] = path
	return checkedFile{File: path, Target: &spec}
}

func (g *global) printChecked(cmd *cobra.Command, c checkedFile) error {
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), c)
	}
	out, text := cmd.OutOrStdout(), ""
	if c.Error != "" {
		out, text = cmd.ErrOrStderr(), c.Error
	} else {
		text = fmt.Sprintf("%s: target %s is well declared", c.File, c.Target.Name)
	}
	if _, err := fmt.Fprintln(out, termtext.Visible(text)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func newTargetsDetach(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "detach TARGET",
		Short: "Take an exclusive target from the session that has it",
		Long: `Take an exclusive target from the session that has it.

It is refused while commands of that session run there; "bus ps" lists them, "bus kill"
stops them. A target that nobody has stays so.`,
		Example:           "  bus targets detach device",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.targetArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := events.TargetName(args[0])
			if err := name.Validate(); err != nil {
				return &cli.UsageError{Err: err}
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				return c.DetachTarget(ctx, name, events.Fence{})
			})
		},
	}
}

// targetArg completes the name of a target.
func (g *global) targetArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeWithin)
	defer cancel()
	var found []string
	err := g.bus.With(ctx, quiet(), func(c *client.Conn) error {
		all, err := c.Targets(ctx)
		for _, t := range all.Targets {
			if strings.HasPrefix(string(t.Spec.Name), prefix) {
				found = append(found, string(t.Spec.Name)+"\t"+t.Spec.Kind)
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
