package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/termtext"
	"keryx/internal/travel"
)

func newSessionDiff(g *global) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "diff ID|KEY --from MOMENT [--to MOMENT]",
		Short: "Show what changed in a session between two moments",
		Long: `Show what changed in a session between two moments: each value of its state that
differs, before and after. Without --to it is compared with now.

` + cli.MomentHelp,
		Example: `  bus session diff cli:local --from '#3' --to '#11'
  bus session diff cli:local --from -10m --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			a, err := cli.ParseMoment(from, now)
			if err != nil {
				return err
			}
			b, err := cli.ParseMoment(to, now)
			if err != nil {
				return err
			}
			if a.Now() {
				return cli.Usagef("--from is needed: the moment to compare with")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				return g.diff(ctx, cmd, c, args[0], a, b)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the earlier moment: '#ORDINAL', SEQUENCE, TIME or -AGO (required)")
	cmd.Flags().StringVar(&to, "to", "", "the later moment; now without it")
	return cmd
}

// place says where a state stands in the record.
type place struct {
	Ordinal  events.Ordinal  `json:"ordinal"`
	Sequence events.Sequence `json:"sequence"`
	Time     time.Time       `json:"time"`
}

func placeOf(p travel.Point) place {
	return place{p.State.LastOrdinal, p.State.LastSequence, p.Time}
}

// sessionDiff is what diff prints as JSON.
type sessionDiff struct {
	Session events.SessionID `json:"session"`
	From    place            `json:"from"`
	To      place            `json:"to"`
	Changes []travel.Change  `json:"changes"`
}

func (g *global) diff(ctx context.Context, cmd *cobra.Command, c *client.Conn, to string, a, b travel.Moment) error {
	before, err := g.point(ctx, cmd, c, to, a)
	if err != nil {
		return err
	}
	after, err := g.point(ctx, cmd, c, to, b)
	if err != nil {
		return err
	}
	d := sessionDiff{Session: before.State.Session, From: placeOf(before), To: placeOf(after)}
	was, err := hidden(g, before.State.View())
	if err != nil {
		return err
	}
	is, err := hidden(g, after.State.View())
	if err != nil {
		return err
	}
	if d.Changes, err = travel.Diff(was, is); err != nil {
		return err
	}
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), d)
	}
	return d.print(cmd.OutOrStdout())
}

func (d sessionDiff) print(w io.Writer) error {
	s := &sheet{}
	for _, end := range []struct {
		name string
		place
	}{{"from", d.From}, {"to", d.To}} {
		s.row(end.name, "ordinal %s, sequence %s, %s", end.Ordinal, end.Sequence, end.Time.Local().Format("2006-01-02 15:04:05.000"))
	}
	if len(d.Changes) == 0 {
		s.b.WriteString("nothing changed\n")
	}
	for _, c := range d.Changes {
		s.b.WriteString(changeLine(c) + "\n")
	}
	return s.print(w)
}

// changeLine begins with + for what is new, - for what is gone, ~ for what differs.
func changeLine(c travel.Change) string {
	name, value := termtext.Visible(c.Path), func(v json.RawMessage) string { return termtext.Visible(string(v)) }
	switch {
	case c.From == nil:
		return fmt.Sprintf("+ %s  %s", name, value(c.To))
	case c.To == nil:
		return fmt.Sprintf("- %s  %s", name, value(c.From))
	}
	return fmt.Sprintf("~ %s  %s -> %s", name, value(c.From), value(c.To))
}
