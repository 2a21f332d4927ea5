package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/replay"
)

func newReplay(g *global) *cobra.Command {
	var f showFlags
	var from, to uint64
	var follow bool
	cmd := &cobra.Command{
		Use:   "replay ID|KEY",
		Short: "Tell a session's record, event by event",
		Long: `Tell a session's record, event by event: when, ordinal, epoch, type, who, and the
one thing that matters. With --json each line is a structured CloudEvent with its
sequence and ordinal, the payload as it was recorded. '_profile' instead of a session
is the record of the profile itself: targets, refused attempts.`,
		Example: `  bus replay cli:local
  bus replay cli:local --type 'turn.*' --from 20
  bus replay cli:local --follow --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			q := replay.Query{From: events.Ordinal(from), To: events.Ordinal(to), Types: f.types}
			if err := q.Validate(); err != nil {
				return &cli.UsageError{Err: err}
			}
			connect := g.connected
			if follow && to == 0 {
				connect = g.followed
			}
			return connect(cmd, func(ctx context.Context, c *client.Conn) error {
				scope, err := scopeOf(ctx, c, args[0])
				if err != nil {
					return err
				}
				w := g.writer(cmd, f, false)
				if follow && !g.bus.Offline() {
					return replay.Tail(ctx, c, w, replay.FollowConfig{Query: q, Scopes: []events.Scope{scope}})
				}
				err = replay.Print(ctx, c, w, scope, q)
				if err == nil && follow {
					return g.complete(ctx, c, scope, q.To)
				}
				return err
			})
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "first ordinal to show")
	cmd.Flags().Uint64Var(&to, "to", 0, "last ordinal to show")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with events as they happen, until interrupted")
	f.flags(cmd)
	return cmd
}

// complete fails if a record at rest ends before the last ordinal that was to be followed.
func (g *global) complete(ctx context.Context, c *client.Conn, scope events.Scope, to events.Ordinal) error {
	tips, err := c.Tips(ctx, scope)
	if err != nil {
		return err
	}
	var last events.Ordinal
	for _, t := range tips {
		last = t.Ordinal
	}
	if last < to {
		return g.bus.NotRunning(fmt.Sprintf("the record goes no further than ordinal %s of %s", last, to))
	}
	return nil
}
