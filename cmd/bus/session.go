package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

func newSession(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "session", Short: "One session: its state, its epochs"}
	return cli.Group(cmd,
		newSessionShow(g), newSessionPolicy(g), newSessionDiff(g),
		newEpochEnd(g, "reset", "End the open epoch and open the next; a running turn is interrupted first", (*client.Conn).Reset),
		newEpochEnd(g, "finalize", "End the open epoch; what waits is not delivered", (*client.Conn).Finalize),
		newForget(g),
	)
}

// epochEnd is a command that ends an epoch.
type epochEnd func(c *client.Conn, ctx context.Context, to, reason string) (events.EpochAnswer, error)

func newEpochEnd(g *global, verb, short string, end epochEnd) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               verb + " ID|KEY --reason TEXT",
		Short:             short,
		Example:           fmt.Sprintf("  bus session %s cli:local --reason 'start over'", verb),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return cli.Usagef("--reason is needed; it goes on record")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				a, err := end(c, ctx, args[0], reason)
				if err != nil {
					return err
				}
				if g.json {
					return cli.PrintJSON(cmd.OutOrStdout(), a)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: session %s, epoch %s: %s\n", verb, a.Session, a.Epoch, a.Reason)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record (required)")
	return cmd
}
