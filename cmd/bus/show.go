package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/travel"
)

func newSessionShow(g *global) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "show ID|KEY",
		Short: "Show a session's state, what it waits for and why, now or as it was",
		Long: `Show a session's state, what it waits for and why. With --at it is the state as it was:
the session's record folded up to that moment, as the bus folds it.

` + cli.MomentHelp,
		Example: `  bus session show cli:local
  bus session show cli:local --json
  bus session show cli:local --at '#12'
  bus session show cli:local --at -5m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := cli.ParseMoment(at, time.Now())
			if err != nil {
				return err
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				if m.Now() {
					v, err := c.Show(ctx, args[0])
					if err != nil {
						return err
					}
					return g.printView(cmd, v, time.Now())
				}
				p, err := g.point(ctx, cmd, c, args[0], m)
				if err != nil {
					return err
				}
				return g.printView(cmd, p.State.View(), p.Time)
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "show it as it was at this moment: '#ORDINAL', SEQUENCE, TIME or -AGO")
	return cmd
}

func (g *global) printView(cmd *cobra.Command, v events.SessionView, now time.Time) error {
	v, err := hidden(g, v)
	if err != nil {
		return err
	}
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), v)
	}
	return printView(cmd.OutOrStdout(), v, now)
}

// point folds a session's record up to a moment.
func (g *global) point(ctx context.Context, cmd *cobra.Command, c *client.Conn, to string, m travel.Moment) (travel.Point, error) {
	scope, err := sessionScope(ctx, c, to)
	if err != nil {
		return travel.Point{}, err
	}
	p, err := travel.To(ctx, c, c.Principal().Profile, scope, m)
	if err == nil && p.Holes > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "bus: %d events up to there cannot be decoded; the state is as if they had not happened\n", p.Holes)
	}
	return p, err
}

// sessionScope is scopeOf for what only a session has.
func sessionScope(ctx context.Context, c *client.Conn, to string) (events.Scope, error) {
	scope, err := scopeOf(ctx, c, to)
	if scope == events.ScopeProfile {
		return "", cli.Usagef("%s is no session", to)
	}
	return scope, err
}

// hidden returns a view without secrets.
func hidden[T any](g *global, v T) (T, error) {
	rules, err := g.rules()
	if err != nil {
		return v, err
	}
	b, err := events.MarshalData(v)
	if err != nil {
		return v, fmt.Errorf("hide secrets: %w", err)
	}
	var out T
	if err := json.Unmarshal(rules.JSON(b), &out); err != nil {
		return v, fmt.Errorf("hide secrets: %w", err)
	}
	return out, nil
}
