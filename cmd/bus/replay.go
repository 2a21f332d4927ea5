package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/replay"
)

// replayFlags say what of a record is told, and how.
type replayFlags struct {
	showFlags
	from, to     uint64
	since, until string
	speed        float64
	maxPause     time.Duration
	follow, tree bool
}

func newReplay(g *global) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay ID|KEY",
		Short: "Tell a session's record, event by event",
		Long: `Tell a session's record, event by event: when, ordinal, epoch, type, who, and the
one thing that matters. With --json each line is a structured CloudEvent with its
sequence and ordinal, the payload as it was recorded. '_profile' instead of a session
is the record of the profile itself: targets, refused attempts.

--from and --to are ordinals, both included. --since is the first time that is shown,
--until the first that is not shown any more: of two events at exactly that time --since
shows both and --until none. Times are written 2026-12-01T18:00:00Z,
'2026-12-01 18:00', 18:00 or, for how long ago, -5m.

--speed lets as much time pass between two events as there was, divided by it. When no
bus runs on --dir, the store is held for as long.`,
		Example: `  bus replay cli:local
  bus replay cli:local --type 'turn.*' --from 20
  bus replay cli:local --since -1h --until -30m
  bus replay cli:local --speed 10
  bus replay cli:local --tree
  bus replay cli:local --follow --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.query(cmd, time.Now())
			if err != nil {
				return err
			}
			connect := g.connected
			if f.follow && f.to == 0 && f.until == "" {
				connect = g.followed
			}
			return connect(cmd, func(ctx context.Context, c *client.Conn) error {
				scope, err := scopeOf(ctx, c, args[0])
				if err != nil {
					return err
				}
				if f.tree {
					return g.tree(ctx, cmd, c, scope, q, f.showFlags)
				}
				w, err := g.writer(cmd, f.showFlags, false)
				if err != nil {
					return err
				}
				return g.tell(ctx, c, w, scope, q, f.follow)
			})
		},
	}
	f.flags(cmd)
	return cmd
}

func (f *replayFlags) flags(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&f.from, "from", 0, "first ordinal to show")
	cmd.Flags().Uint64Var(&f.to, "to", 0, "last ordinal to show")
	cmd.Flags().StringVar(&f.since, "since", "", "first time to show")
	cmd.Flags().StringVar(&f.until, "until", "", "first time not to show any more")
	cmd.Flags().Float64Var(&f.speed, "speed", 0, "keep the pace of the events, so many times faster")
	cmd.Flags().DurationVar(&f.maxPause, "max-pause", 0, "longest pause with --speed; 0 for any (default 0)")
	cmd.Flags().BoolVar(&f.tree, "tree", false, "show what came of what, as a tree")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with events as they happen, until interrupted")
	f.showFlags.flags(cmd)
}

func (f *replayFlags) query(cmd *cobra.Command, now time.Time) (replay.Query, error) {
	q := replay.Query{From: events.Ordinal(f.from), To: events.Ordinal(f.to), Types: f.types}
	for _, bound := range []struct {
		text string
		at   *time.Time
	}{{f.since, &q.Since}, {f.until, &q.Until}} {
		if bound.text == "" {
			continue
		}
		var err error
		if *bound.at, err = cli.ParsePast(bound.text, now); err != nil {
			return q, err
		}
	}
	if cmd.Flags().Changed("speed") {
		q.Pace = &replay.Pace{Speed: f.speed, MaxPause: f.maxPause}
	} else if f.maxPause != 0 {
		return q, cli.Usagef("--max-pause goes with --speed")
	}
	if f.tree && (f.follow || q.Pace != nil) {
		return q, cli.Usagef("--tree does not go with --follow or --speed")
	}
	if err := q.Validate(); err != nil {
		return q, &cli.UsageError{Err: err}
	}
	return q, nil
}

func (g *global) tell(ctx context.Context, c *client.Conn, w *replay.Writer, scope events.Scope, q replay.Query, follow bool) error {
	if follow && !g.bus.Offline() {
		return replay.Tail(ctx, c, w, replay.FollowConfig{Query: q, Scopes: []events.Scope{scope}})
	}
	err := replay.Print(ctx, c, w, scope, q)
	if err == nil && follow {
		return g.complete(ctx, c, scope, q.To)
	}
	return err
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
