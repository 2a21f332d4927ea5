package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/setup/bundle"
)

func newPackage(g *global) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "package",
		Short: "Packages: what a profile's sessions can be given to run",
		Long: `Packages: what a profile's sessions can be given to run.

A package is a directory with a keryx-package.yaml (docs/setup.md). Adding one reads it
and runs nothing. Enabling one takes effect at each session's next epoch or attach. What
it has to install first is installed by 'bus setup', after consent.`,
	}, newPackageAdd(g), newPackageList(g),
		newPackageAct(g, "enable", "Enable packages, all that are named or none",
			"It runs nothing. It takes effect at each session's next epoch or attach;\n'bus package list --session' says whether it has.", (*client.Conn).EnablePackages),
		newPackageAct(g, "disable", "Disable packages, all that are named or none",
			"It takes effect at each session's next epoch or attach.", (*client.Conn).DisablePackages),
		newPackageAct(g, "remove", "Forget packages, all that are named or none",
			"What they have installed is taken away by the executor. A package whose setup runs\nis not removed: cancel that first.", (*client.Conn).RemovePackages))
}

func newPackageAdd(g *global) *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "add DIR",
		Short: "Make the package in a directory known, or its new revision",
		Long: `Make the package in a directory known, or its new revision. It runs nothing.

The directory has to be at the same path on the machine of the executor that is to set
the package up. Files that change later are found before anything is run: add the package
again, and review it again.`,
		Example: "  bus package add ./integrations/hello-package",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := bundle.Read(args[0])
			if err != nil {
				return err
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				added, err := c.AddPackage(ctx, p, replace)
				if err != nil {
					return err
				}
				return g.printRefs(cmd, "added", added)
			})
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "take the place of what was added under its key from another directory")
	return cmd
}

func (g *global) printRefs(cmd *cobra.Command, done string, a events.PackageRefs) error {
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), a)
	}
	for _, p := range a.Packages {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s, revision %.12s\n", done, p.Key, p.Revision); err != nil {
			return err
		}
	}
	return nil
}

// newPackageAct is a command that does one thing with several packages.
func newPackageAct(g *global, verb, short, long string, act func(*client.Conn, context.Context, ...string) (events.PackageRefs, error)) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " PACKAGE...",
		Short:             short,
		Long:              short + ".\n\n" + long + "\n\nPACKAGE is a key or, where only one package has it, a name.",
		Example:           fmt.Sprintf("  bus package %s hello", verb),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: g.packageArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				a, err := act(c, ctx, args...)
				if err != nil {
					return err
				}
				return g.printRefs(cmd, strings.TrimSuffix(verb, "e")+"ed", a)
			})
		},
	}
}

func newPackageList(g *global) *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packages, and what of them is enabled, installed and in effect",
		Long: `List the packages, and what of them is enabled, installed and in effect.

SETUP is where the package's setup stands: the run that goes on, or the last one. With
--session, IN EFFECT says whether that session has the package now, or when it will.`,
		Example: "  bus package list --session cli:local",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				all, err := c.Packages(ctx, session)
				if err != nil {
					return err
				}
				return g.printPackages(cmd, all)
			})
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "a session, by id or name, to say what is in effect there")
	complete(cmd, "session", g.sessionFlag)
	return cmd
}

func (g *global) printPackages(cmd *cobra.Command, all []events.PackageView) error {
	if g.json {
		for _, p := range all {
			if err := cli.PrintJSON(cmd.OutOrStdout(), p); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(cmd.OutOrStdout(), "KEY", "NAME", "VERSION", "ENABLED", "INSTALLED", "SETUP", "IN EFFECT", "SOURCE")
	for _, p := range all {
		t.Row(string(p.Package.Key), p.Package.Name, p.Package.Version, yesNo(p.Enabled), installed(p), setupState(p), inEffect(p), p.Package.Source)
	}
	return t.Close()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func installed(p events.PackageView) string {
	switch {
	case p.Package.Setup == nil:
		return "needs nothing"
	case p.Installed == nil:
		return "no"
	case p.Installed.Revision != p.Package.Revision:
		return p.Installed.Version + ", an older revision"
	}
	return p.Installed.Version
}

func setupState(p events.PackageView) string {
	if p.Run == nil {
		return ""
	}
	if p.Run.State.Active() {
		return fmt.Sprintf("%s, %d %%", p.Run.State, p.Run.Progress.Percent)
	}
	return string(p.Run.State)
}

func inEffect(p events.PackageView) string {
	switch {
	case p.InEffect == nil:
		return ""
	case *p.InEffect == p.Enabled:
		return yesNo(*p.InEffect)
	case p.Enabled:
		return "from the next epoch or attach"
	}
	return "until the next epoch or attach"
}

// packageArgs completes packages: their keys, and names.
func (g *global) packageArgs(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeWithin)
	defer cancel()
	var found []string
	err := g.bus.With(ctx, quiet(), func(c *client.Conn) error {
		all, err := c.Packages(ctx, "")
		for _, p := range all {
			if key := string(p.Package.Key); strings.HasPrefix(key, prefix) && len(found) < completions {
				found = append(found, key+"\t"+p.Package.Name+" "+p.Package.Version)
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// packageArg completes one package.
func (g *global) packageArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return g.packageArgs(cmd, args, prefix)
}
