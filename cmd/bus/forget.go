package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

func newForget(g *global) *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget ID --reason TEXT --yes",
		Short: "Remove a session with its record, names, output and dead letters",
		Long: `Remove a session: its record but for the event that ended it, its names, output and
snapshots, and the dead letters that speak of it. An open epoch is finalized first.
Nothing brings it back but a backup. That it was removed, why and by whom stays on
record in the profile's own scope.

The session is named by its id: a name may lead to another one by now.`,
		Example:           "  bus session forget 01M8R787DM65003DDE86NMTKDT --reason 'the user asked' --yes",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !events.IsULID(args[0]):
				return cli.Usagef("%q is not the id of a session; 'bus session show' has it", args[0])
			case reason == "":
				return cli.Usagef("--reason is needed; it goes on record")
			case !yes:
				return cli.Usagef("this cannot be undone: say --yes")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				if err := c.Forget(ctx, events.SessionID(args[0]), reason); err != nil {
					return err
				}
				if g.json {
					return cli.PrintJSON(cmd.OutOrStdout(), events.Forget{Session: events.SessionID(args[0]), Reason: reason})
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "session %s is removed\n", args[0])
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record (required)")
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, remove it (required)")
	return cmd
}
