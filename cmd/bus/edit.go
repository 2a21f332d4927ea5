package main

import (
	"context"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
)

func newEdit(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "edit RECEIPT [TEXT|-]",
		Short: "Give a message that was not taken yet another text",
		Long: `Give a message that was not taken yet another text: the argument, or standard input.

It keeps its place, its receipt and its time limit. One that was taken cannot be edited.`,
		Example: `  bus edit 01KB3D9Q7YEXAMPLE0000000000 'make -k test'
  bus edit 01KB3D9Q7YEXAMPLE0000000000 - < message`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := message(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				r, err := c.Edit(ctx, events.ReceiptID(args[0]), events.Body{Text: text})
				if err != nil {
					return err
				}
				return g.printReceipt(cmd.OutOrStdout(), r)
			})
		},
	}
}
