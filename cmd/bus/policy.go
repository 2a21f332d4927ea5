package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

var (
	switches     = []string{"on", "off"}
	toolDefaults = []events.ToolDefault{events.ToolDefaultAuto, events.ToolDefaultAllow, events.ToolDefaultDeny}
)

type policyFlags struct {
	peers, tools     string
	approvers, hosts []string
}

func newSessionPolicy(g *global) *cobra.Command {
	var f policyFlags
	cmd := &cobra.Command{
		Use:   "policy ID|KEY",
		Short: "Show or change who may do what in a session",
		Long: `Show who may do what in a session, or change what the flags name. What is changed goes
on record and outlives epochs.

--peers lets other sessions of the profile send messages into this one. --approvers are
the people for whom a gateway of the session may answer approvals, as the gateway names
them. --tool-default says what happens to a tool when not all who are asked before it runs
answer in time: auto denies if somebody was asked, and allows if nobody is registered.`,
		Example: `  bus session policy cli:local
  bus session policy cli:local --peers on
  bus session policy slack:C1 --approvers slack:U1,slack:U2
  bus session policy slack:C1 --approvers ''`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, change, err := f.read(cmd, args[0])
			if err != nil {
				return err
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				return g.sessionPolicy(ctx, cmd.OutOrStdout(), c, p, change)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.peers, "peers", "", "take messages of peers: on or off")
	fs.StringVar(&f.tools, "tool-default", "", "tools without an answer: "+strings.Join(cli.Words(toolDefaults), ", "))
	fs.StringSliceVar(&f.approvers, "approvers", nil, "platform users who may approve; '' for nobody")
	fs.StringSliceVar(&f.hosts, "hosts", nil, "hosts that may attach; '' for the profile's default hosts")
	complete(cmd, "peers", cobra.FixedCompletions(switches, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "tool-default", cobra.FixedCompletions(cli.Words(toolDefaults), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// read makes the command of the flags that were given, and reports whether any was.
func (f *policyFlags) read(cmd *cobra.Command, to string) (p events.SetPolicy, change bool, err error) {
	p.To = to
	given := cmd.Flags().Changed
	if given("peers") {
		on, err := cli.OneOf("peers", f.peers, switches...)
		if err != nil || on == "" {
			return p, false, cli.Usagef("--peers %q: on or off", f.peers)
		}
		yes := on == "on"
		p.Peers = &yes
	}
	if given("tool-default") {
		d, err := cli.OneOf("tool-default", f.tools, toolDefaults...)
		if err != nil || d == "" {
			return p, false, cli.Usagef("--tool-default %q: one of %s", f.tools, strings.Join(cli.Words(toolDefaults), ", "))
		}
		p.ToolDefault = &d
	}
	if given("approvers") {
		users := named[events.PlatformUser](f.approvers)
		p.Approvers = &users
	}
	if given("hosts") {
		hosts := named[events.PrincipalName](f.hosts)
		for _, h := range hosts {
			if err := h.Validate(); err != nil {
				return p, false, &cli.UsageError{Err: err}
			}
		}
		p.Hosts = &hosts
	}
	return p, p.Peers != nil || p.ToolDefault != nil || p.Approvers != nil || p.Hosts != nil, nil
}

// named are the values of a list flag, without empty ones.
func named[T ~string](values []string) []T {
	out := []T{}
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" && !slices.Contains(out, T(v)) {
			out = append(out, T(v))
		}
	}
	return out
}

func (g *global) sessionPolicy(ctx context.Context, w io.Writer, c *client.Conn, p events.SetPolicy, change bool) error {
	a := events.PolicyAnswer{}
	var err error
	if change {
		a, err = c.SetPolicy(ctx, p)
	} else {
		var v events.SessionView
		v, err = c.Show(ctx, p.To)
		a.Session, a.Policy = v.Session, v.Policy
	}
	if err != nil {
		return err
	}
	if g.json {
		return cli.PrintJSON(w, a)
	}
	s := &sheet{}
	s.row("session", "%s", a.Session)
	s.policy(a.Policy)
	s.row("peers", "%s", map[bool]string{true: "on", false: "off"}[a.Policy.Peers])
	s.row("approvers", "%s", orNone(joined(a.Policy.Approvers, ", ")))
	tools := a.Policy.ToolDefault
	if tools == "" {
		tools = events.ToolDefaultAuto
	}
	s.row("tools", "%s without an answer", tools)
	return s.print(w)
}

func orNone(text string) string {
	if text == "" {
		return "operators only"
	}
	return text
}
