package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/termtext"
)

func newQueue(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "queue ID|KEY",
		Short: "List the messages that wait in a session, in order, and why they wait",
		Long: `List the messages that wait in a session, in order, and why they wait: what is offered,
what is next, what is held or not due yet, and what is unresolved.`,
		Example:           "  bus queue cli:local\n  bus queue cli:local --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				v, err := c.Show(ctx, args[0])
				if err != nil {
					return err
				}
				return g.printQueue(cmd.OutOrStdout(), v)
			})
		},
	}
}

func (g *global) printQueue(w io.Writer, v events.SessionView) error {
	if g.json {
		for _, i := range v.Queue {
			if err := cli.PrintJSON(w, i); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(w, "RECEIPT", "STATE", "MODE", "KIND", "SENDER", "QUEUED", "DUE", "EXPIRES", "TEXT", "WHY")
	for _, i := range v.Queue {
		t.Row(string(i.Receipt), string(i.State), string(i.Mode), string(i.Kind), string(i.Sender),
			local(i.QueuedAt), local(i.NotBefore), local(i.ExpiresAt), termtext.Cut(i.Text, 40), i.Reason)
	}
	return t.Close()
}

func local(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(timeLayout)
}

func newTurns(g *global) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:               "turns ID|KEY",
		Short:             "List the turns of a session, newest first",
		Example:           "  bus turns cli:local --limit 10",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return cli.Usagef("--limit %d: 0 for all", limit)
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				return g.printTurns(ctx, cmd.OutOrStdout(), c, args[0], limit)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0 for all")
	return cmd
}

func (g *global) printTurns(ctx context.Context, w io.Writer, c *client.Conn, to string, limit int) error {
	row := func(v events.TurnView) error { return cli.PrintJSON(w, v) }
	end := func() error { return nil }
	if !g.json {
		t := cli.NewTable(w, "TURN", "EPOCH", "STATE", "OUTCOME", "HOST", "MESSAGES", "STARTED", "TOOK")
		row = func(v events.TurnView) error {
			t.Row(string(v.Turn), v.Epoch.String(), string(v.State), string(v.Outcome), string(v.Host),
				fmt.Sprint(len(v.Items)), local(v.StartedAt), took(v))
			return nil
		}
		end = t.Close
	}
	n := 0
	for v, err := range c.Turns(ctx, to) {
		if err != nil {
			return err
		}
		if err := row(v); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return end()
}

func took(v events.TurnView) string {
	if v.EndedAt.IsZero() || v.StartedAt.IsZero() {
		return ""
	}
	return v.EndedAt.Sub(v.StartedAt).Round(time.Millisecond).String()
}

func newTurn(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "turn TURN",
		Short:   "Tell what became of a turn, at any time, with its reply",
		Example: "  bus turn 01KB3D9Q7YEXAMPLE0000000000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				v, err := c.Turn(ctx, events.TurnID(args[0]))
				if err != nil {
					return err
				}
				return g.printTurn(cmd.OutOrStdout(), v)
			})
		},
	}
}

func (g *global) printTurn(w io.Writer, v events.TurnView) error {
	if g.json {
		return cli.PrintJSON(w, v)
	}
	s := &sheet{}
	s.row("turn", "%s", v.Turn)
	s.row("session", "%s, epoch %s", v.Session, v.Epoch)
	s.row("state", "%s", v.State)
	s.row("outcome", "%s", v.Outcome)
	s.row("host", "%s", v.Host)
	s.row("messages", "%s", joined(v.Items, ", "))
	s.row("started", "%s", local(v.StartedAt))
	s.row("ended", "%s", local(v.EndedAt))
	s.row("took", "%s", took(v))
	s.row("error", "%s", v.Error)
	s.row("reply", "%s", v.Reply)
	if l := v.Late; l != nil {
		s.row("late", "%s: %s %s", l.Outcome, l.Error, l.Reply)
	}
	return s.print(w)
}
