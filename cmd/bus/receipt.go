package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

// waitStates are those a command can wait for, in their order.
var waitStates = []events.ItemState{events.StateOffered, events.StateAccepted, events.StateSettled}

func waitFlag(value string) (events.ItemState, error) {
	return cli.OneOf("wait", value, waitStates...)
}

// reached reports whether an item has come to a state or beyond.
func reached(r events.Receipt, want events.ItemState) bool {
	rank := map[events.ItemState]int{events.StateOffered: 1, events.StateAccepted: 2, events.StateSettled: 3}
	return want == "" || rank[r.State] >= rank[want]
}

// stuck reports whether an item will not go on by itself.
func stuck(r events.Receipt) bool { return r.Over() || r.State == events.StateUnresolved }

func newReceipt(g *global) *cobra.Command {
	var wait string
	cmd := &cobra.Command{
		Use:   "receipt RECEIPT",
		Short: "Tell what became of a message, at any time, after any disconnect",
		Long: `Tell what became of a message, at any time, after any disconnect.

It was never started, is running, has ended with an outcome, was reported late after its
host had been given up, or is unresolved: nobody can know whether it ran. What is
unresolved is run again by 'bus requeue' or given up by 'bus discard'.`,
		Example: "  bus receipt 01KB3D9Q7YEXAMPLE0000000000 --wait settled",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := waitFlag(wait)
			if err != nil {
				return err
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				r, err := c.Receipt(ctx, events.ReceiptID(args[0]))
				if err != nil {
					return err
				}
				return g.followReceipt(ctx, cmd, c, r, want)
			})
		},
	}
	cmd.Flags().StringVar(&wait, "wait", "", "wait until it is "+strings.Join(cli.Words(waitStates), ", "))
	complete(cmd, "wait", cobra.FixedCompletions(cli.Words(waitStates), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// judge prints the turn of a settled item and fails if the item did not get where it was
// waited for, or its turn did not complete.
func (g *global) judge(ctx context.Context, cmd *cobra.Command, c *client.Conn, r events.Receipt, want events.ItemState) error {
	if !reached(r, want) {
		return &cli.ExitError{Code: cli.ExitFailure, Err: events.Errorf(events.CodeWrongState, "message %s is %s", r.ID, standing(r))}
	}
	if r.State != events.StateSettled {
		return nil
	}
	v, err := c.Turn(ctx, r.Turn)
	if err != nil {
		return err
	}
	if err := g.printTurn(cmd.OutOrStdout(), v); err != nil {
		return err
	}
	if v.Outcome != events.OutcomeCompleted {
		return &cli.ExitError{Code: cli.ExitFailure}
	}
	return nil
}

// standing says where an item stands, for people.
func standing(r events.Receipt) string {
	text := string(r.State)
	if r.Outcome != "" {
		text += ", " + string(r.Outcome)
	}
	if r.Late != "" {
		text += ", reported late as " + string(r.Late)
	}
	if r.DowngradedFrom != "" {
		text += fmt.Sprintf(", %s instead of %s", r.Mode, r.DowngradedFrom)
	}
	if r.Turn != "" {
		text += ", turn " + string(r.Turn)
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

func (g *global) printReceipt(w io.Writer, r events.Receipt) error {
	if g.json {
		return cli.PrintJSON(w, struct {
			events.Receipt
			Fate events.Fate `json:"fate"`
		}{r, r.Fate()})
	}
	s := &sheet{}
	s.row("receipt", "%s", r.ID)
	s.row("session", "%s, epoch %s, sequence %s", r.Session, r.Epoch, r.Sequence)
	s.row("fate", "%s", strings.ReplaceAll(string(r.Fate()), "_", " "))
	s.row("state", "%s", standing(r))
	return s.print(w)
}

// newDecision is a command that decides on one item.
func newDecision(g *global, verb, short, long string, reasoned bool, act func(context.Context, *client.Conn, events.ReceiptID, string) (events.Receipt, error)) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               verb + " RECEIPT",
		Short:             short,
		Long:              short + ".\n\n" + long,
		Example:           fmt.Sprintf("  bus %s 01KB3D9Q7YEXAMPLE0000000000", verb),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				r, err := act(ctx, c, events.ReceiptID(args[0]), reason)
				if err != nil {
					return err
				}
				return g.printReceipt(cmd.OutOrStdout(), r)
			})
		},
	}
	if reasoned {
		cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	}
	return cmd
}

func newCancel(g *global) *cobra.Command {
	return newDecision(g, "cancel", "Take back a message that was not taken yet",
		"A message in a running turn is stopped by interrupting the turn, not by this.", true,
		func(ctx context.Context, c *client.Conn, id events.ReceiptID, reason string) (events.Receipt, error) {
			return c.Cancel(ctx, id, reason)
		})
}

func newRequeue(g *global) *cobra.Command {
	return newDecision(g, "requeue", "Run an unresolved message again, or release a held one",
		"It goes to the head of the queue. What an unresolved message did before is not undone.", false,
		func(ctx context.Context, c *client.Conn, id events.ReceiptID, _ string) (events.Receipt, error) {
			return c.Requeue(ctx, id)
		})
}

func newDiscard(g *global) *cobra.Command {
	return newDecision(g, "discard", "Give up an unresolved message",
		"It is not delivered again. Whether it ran remains unknown.", true,
		func(ctx context.Context, c *client.Conn, id events.ReceiptID, reason string) (events.Receipt, error) {
			return c.Discard(ctx, id, reason)
		})
}
