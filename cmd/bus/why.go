package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/explain"
	"keryx/internal/redact"
	"keryx/internal/replay"
	"keryx/internal/travel"
)

func newWhy(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "why ID|KEY|RECEIPT|TURN|EXEC",
		Short: "Say why something stands where it does, and what would move it on",
		Long: `Say why a session, a message, a turn or an exec stands where it does: the facts that led
there, with their ordinals and sequences, what it waits for, and what would move it on.`,
		Example: `  bus why cli:local
  bus why 01M8QTRSQ9PTFF81598C010KJM --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				return g.why(ctx, cmd, c, args[0])
			})
		},
	}
}

// whyView is what why prints as JSON.
type whyView struct {
	Kind    events.FoundKind `json:"kind"`
	ID      string           `json:"id"`
	Session events.SessionID `json:"session"`
	explain.Standing
	Facts []whyFact `json:"facts"`
}

type whyFact struct {
	Ordinal  events.Ordinal  `json:"ordinal"`
	Sequence events.Sequence `json:"sequence"`
	Time     time.Time       `json:"time"`
	Type     events.Type     `json:"type"`
	Text     string          `json:"text"`
}

func (g *global) why(ctx context.Context, cmd *cobra.Command, c *client.Conn, id string) error {
	rules, err := g.rules()
	if err != nil {
		return err
	}
	found, err := c.Find(ctx, id)
	if err != nil {
		return err
	}
	scope := found.Session.Scope()
	if found.Imported {
		scope = events.ImportScope(found.Session)
	}
	trace := explain.New(found.Kind, id)
	if _, _, err := travel.Walk(ctx, c, scope, func(r events.Record, hole error) bool {
		if hole == nil {
			trace.Tell(r)
		}
		return true
	}); err != nil {
		return err
	}
	v := whyView{Kind: found.Kind, ID: id, Session: found.Session, Facts: []whyFact{}}
	if v.Standing, err = whereStands(ctx, c, found, scope, id); err != nil {
		return err
	}
	for _, r := range trace.Facts() {
		r = redact.Record(rules, r)
		v.Facts = append(v.Facts, whyFact{r.Ordinal, r.Sequence, r.Time, r.Type, replay.Text(r)})
	}
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), v)
	}
	return v.print(cmd.OutOrStdout())
}

// whereStands asks where something stands now.
func whereStands(ctx context.Context, c *client.Conn, found events.FoundSession, scope events.Scope, id string) (explain.Standing, error) {
	view, err := c.Show(ctx, string(scope))
	if err != nil {
		return explain.Standing{}, err
	}
	switch found.Kind {
	case events.FoundReceipt:
		r, err := c.Receipt(ctx, events.ReceiptID(id))
		return explain.Receipt(r, view), err
	case events.FoundTurn:
		t, err := c.Turn(ctx, events.TurnID(id))
		return explain.Turn(t), err
	case events.FoundExec:
		return explain.Exec(events.ExecID(id), view), nil
	}
	return explain.Session(view), nil
}

func (v whyView) print(w io.Writer) error {
	s := &sheet{}
	s.row(string(v.Kind), "%s", v.ID)
	if v.Kind != events.FoundSessionKind || v.ID != string(v.Session) {
		s.row("session", "%s", v.Session)
	}
	s.row("state", "%s", v.State)
	s.row("waits for", "%s", v.WaitsFor)
	for _, u := range v.Unblock {
		s.row("unblock", "%s", u)
	}
	for _, f := range v.Facts {
		s.row("because", "#%s sequence %s, %s, %s: %s", f.Ordinal, f.Sequence, f.Time.Local().Format(timeLayout), f.Type.Short(), f.Text)
	}
	return s.print(w)
}
