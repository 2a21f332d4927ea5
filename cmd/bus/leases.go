package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/internal/cli"
)

func newLeases(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "leases",
		Short:   "List the leases of a profile and who holds them",
		Example: "  bus leases\n  bus leases --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				all, err := c.Leases(ctx)
				if err != nil {
					return err
				}
				if g.json {
					for _, l := range all {
						if err := cli.PrintJSON(cmd.OutOrStdout(), l); err != nil {
							return err
						}
					}
					return nil
				}
				t := cli.NewTable(cmd.OutOrStdout(), "KEY", "STATE", "HOLDER", "INSTANCE", "FENCE", "TTL")
				for _, l := range all {
					t.Row(l.Key.String(), string(l.State), string(l.Holder), string(l.Instance), l.Fence.String(),
						(time.Duration(l.TTLMS) * time.Millisecond).String())
				}
				return t.Close()
			})
		},
	}
}
