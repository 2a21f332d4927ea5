package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/termtext"
)

func newApprovals(g *global) *cobra.Command {
	var ended bool
	cmd := &cobra.Command{
		Use:   "approvals [ID|KEY|APPROVAL]",
		Short: "List commands that wait for somebody's word",
		Long: `List commands that wait for somebody's word, oldest first: of the profile, or of one
session. With the id of an approval, show all that it is for.

A command waits when its target's policy says so, or its requester asked for it. It is
started by 'bus approve', once, if nothing has changed by then: a new generation of the
target, a take-over, a reset, the end of its turn or 5 minutes end the approval.`,
		Example: `  bus approvals
  bus approvals cli:local --ended
  bus approvals 01KB3D9Q7YEXAMPLE0000000000`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				to := ""
				if len(args) > 0 {
					to = args[0]
				}
				return g.approvals(ctx, cmd.OutOrStdout(), c, to, ended)
			})
		},
	}
	cmd.Flags().BoolVar(&ended, "ended", false, "also those that have ended and are remembered")
	return cmd
}

func (g *global) approvals(ctx context.Context, w io.Writer, c *client.Conn, to string, ended bool) error {
	if events.IsULID(to) {
		v, err := c.Approval(ctx, events.ApprovalID(to))
		switch {
		case err == nil:
			return g.printApproval(w, v)
		case !errors.Is(err, events.ErrOf(events.CodeUnknownApproval)):
			return err
		}
	}
	list, err := c.Approvals(ctx, to, ended)
	if err != nil {
		return err
	}
	if g.json {
		for _, v := range list {
			if err := cli.PrintJSON(w, v); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(w, "APPROVAL", "STATE", "LEFT", "TARGET", "BY", "COMMAND")
	for _, v := range list {
		t.Row(string(v.Approval), string(v.State), left(v, time.Now()), string(v.Target), string(v.Requester), commandWords(v.Argv))
	}
	return t.Close()
}

// left is how long an approval may still be answered.
func left(v events.ApprovalView, now time.Time) string {
	if v.State != events.ApprovalStatePending {
		return "-"
	}
	return max(0, v.ExpiresAt.Sub(now)).Round(time.Second).String()
}

func commandWords(argv []string) string {
	return termtext.Cut(termtext.Visible(strings.Join(argv, " ")), 120)
}

func (g *global) printApproval(w io.Writer, v events.ApprovalView) error {
	if g.json {
		return cli.PrintJSON(w, v)
	}
	s := &sheet{}
	s.row("approval", "%s", v.Approval)
	s.row("state", "%s", approvalState(v, time.Now()))
	s.row("session", "%s, epoch %s", v.Session, v.Epoch)
	s.row("exec", "%s", v.Exec)
	s.row("turn", "%s", v.Turn)
	s.row("asked by", "%s: %s", v.Requester, v.Why)
	s.row("target", "%s (%s), generation %d, access epoch %d", v.Target, v.Kind, v.Generation, v.AccessEpoch)
	s.row("user", "%s", v.User)
	s.row("directory", "%s", v.Cwd)
	for i, a := range v.Argv {
		s.row(fmt.Sprintf("argv[%d]", i), "%q", a)
	}
	for _, name := range slices.Sorted(maps.Keys(v.EnvSet)) {
		s.row("sets", "%s=%q", name, v.EnvSet[name])
	}
	s.row("unsets", "%s", joined(v.EnvUnset, ", "))
	if v.StdinBytes > 0 {
		s.row("input", "%d bytes", v.StdinBytes)
	}
	s.row("digest", "%s", v.Digest)
	return s.print(w)
}

func approvalState(v events.ApprovalView, now time.Time) string {
	text := string(v.State)
	if v.State == events.ApprovalStatePending {
		return text + ", " + left(v, now) + " left"
	}
	if v.By != "" {
		text += " by " + string(v.By)
	}
	if v.PlatformUser != "" {
		text += " for " + string(v.PlatformUser)
	}
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	return text
}

const nothingStarts = "nothing could be started; start one with 'bus up' or 'bus serve'"

func newApprove(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "approve APPROVAL",
		Short: "Let a command run that waits for somebody's word",
		Long: `Let a command run that waits for somebody's word.

It is started once, as it was asked for. If anything has changed since, it is refused
with stale_approval and nothing is started. The first answer counts.`,
		Example:           "  bus approve 01KB3D9Q7YEXAMPLE0000000000",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.approvalArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.running(cmd, nothingStarts, func(ctx context.Context, c *client.Conn) error {
				v, err := c.Approve(ctx, events.ApprovalID(args[0]), "")
				if err != nil {
					return err
				}
				return g.answeredApproval(cmd.OutOrStdout(), v)
			})
		},
	}
}

func newDeny(g *global) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "deny APPROVAL",
		Short:             "Refuse a command that waits for somebody's word",
		Long:              "Refuse a command that waits for somebody's word. Who asked for it is told, with the reason.",
		Example:           "  bus deny 01KB3D9Q7YEXAMPLE0000000000 --reason 'not in production'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.approvalArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				v, err := c.Deny(ctx, events.ApprovalID(args[0]), "", reason)
				if err != nil {
					return err
				}
				return g.answeredApproval(cmd.OutOrStdout(), v)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record and for who asked")
	return cmd
}

func (g *global) answeredApproval(w io.Writer, v events.ApprovalView) error {
	if g.json {
		return cli.PrintJSON(w, v)
	}
	_, err := fmt.Fprintf(w, "%s: exec %s in %s: %s\n", v.State, v.Exec, v.Target, commandWords(v.Argv))
	return err
}

// approvalArg completes an open approval.
func (g *global) approvalArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeWithin)
	defer cancel()
	var found []string
	err := g.bus.With(ctx, slog.New(slog.DiscardHandler), func(c *client.Conn) error {
		open, err := c.Approvals(ctx, "", false)
		for _, v := range open {
			if strings.HasPrefix(string(v.Approval), prefix) {
				found = append(found, string(v.Approval)+"\t"+commandWords(v.Argv))
			}
		}
		return err
	})
	if err != nil && len(found) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
