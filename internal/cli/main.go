package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"keryx/internal/termtext"
)

// Main runs a command tree with the process's arguments and returns the exit code.
// Errors are written to the tree's error output. It may be called once per tree.
func Main(ctx context.Context, root *cobra.Command) int {
	begun := false
	prepare(root, &begun)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	var usage *UsageError
	if errors.As(err, &usage) || !begun {
		fmt.Fprintf(root.ErrOrStderr(), "%s: usage: %s\n%s", root.Name(), oneLine(err), hint(cmd))
		return ExitUsage
	}
	var exit *ExitError
	if !errors.As(err, &exit) {
		exit = &ExitError{Code: ExitFailure, Err: err}
	}
	if exit.Err != nil {
		fmt.Fprintf(root.ErrOrStderr(), "%s: %s\n", root.Name(), termtext.Visible(Message(exit.Err)))
	}
	return exit.Code
}

// oneLine keeps cobra's suggestions, which come on lines of their own.
func oneLine(err error) string {
	return termtext.Visible(strings.Join(strings.Fields(err.Error()), " "))
}

func hint(cmd *cobra.Command) string {
	return fmt.Sprintf("See '%s --help'.\n", cmd.CommandPath())
}

// prepare lets cobra print nothing by itself, and notes when a command's own work
// begins: errors before that are about how it was called.
func prepare(cmd *cobra.Command, begun *bool) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			*begun = true
			return run(c, args)
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub, begun)
	}
}

// Group makes a command that only holds others: called without one of them it shows its
// help and fails as a usage error.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subs...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usagef("no command %q of %q", args[0], c.CommandPath())
		}
		if err := c.Help(); err != nil {
			return err
		}
		return &ExitError{Code: ExitUsage}
	}
	return cmd
}
