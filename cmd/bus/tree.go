package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/explain"
	"keryx/internal/redact"
	"keryx/internal/replay"
	"keryx/internal/travel"
)

// treeLimit is how many events are shown as a tree: all of them are in memory then.
const treeLimit = 50_000

// branches are the events of a record by what they came of.
type branches struct {
	below  map[events.Ordinal][]events.Record
	parent map[events.Ordinal]events.Ordinal
	line   func(events.Record) string
	out    io.Writer
}

// tree tells a record as a tree: what came of what.
func (g *global) tree(ctx context.Context, cmd *cobra.Command, c *client.Conn, scope events.Scope, q replay.Query, f showFlags) error {
	hide := func(r events.Record) events.Record { return r }
	if !f.showSecrets {
		rules, err := g.rules()
		if err != nil {
			return err
		}
		hide = func(r events.Record) events.Record { return redact.Record(rules, r) }
	}
	b := &branches{
		below: make(map[events.Ordinal][]events.Record), parent: make(map[events.Ordinal]events.Ordinal),
		out: cmd.OutOrStdout(), line: func(r events.Record) string { return replay.Line(r, g.lineOptions(cmd, f, false)) },
	}
	if err := b.read(ctx, c, scope, q, hide); err != nil {
		return err
	}
	if g.json {
		return b.json(0)
	}
	return b.print(0, "")
}

func (b *branches) read(ctx context.Context, c *client.Conn, scope events.Scope, q replay.Query, hide func(events.Record) events.Record) error {
	var t explain.Tree
	var shown int
	_, _, err := travel.Walk(ctx, c, scope, func(r events.Record, hole error) bool {
		if hole != nil {
			return true
		}
		parent := t.Parent(r)
		if !q.Wants(r) {
			return true
		}
		if _, known := b.parent[parent]; !known {
			parent = 0 // what it came of is not shown
		}
		b.parent[r.Ordinal] = parent
		b.below[parent] = append(b.below[parent], hide(r))
		shown++
		return shown <= treeLimit
	})
	if err == nil && shown > treeLimit {
		err = events.Errorf(events.CodeTooLarge, "a tree has at most %d events: narrow it down by --from and --to, or --since and --until", treeLimit)
	}
	return err
}

// print writes the branch below an event.
func (b *branches) print(of events.Ordinal, indent string) error {
	for i, r := range b.below[of] {
		own, under := "", ""
		if of != 0 {
			own, under = "├─ ", "│  "
			if i == len(b.below[of])-1 {
				own, under = "└─ ", "   "
			}
		}
		if _, err := fmt.Fprintln(b.out, indent+own+strings.TrimLeft(b.line(r), " ")); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		if err := b.print(r.Ordinal, indent+under); err != nil {
			return err
		}
	}
	return nil
}

// json writes the branch below an event, a line each.
func (b *branches) json(of events.Ordinal) error {
	for _, r := range b.below[of] {
		body, err := events.MarshalStructured(*r.Event)
		if err != nil {
			return fmt.Errorf("print event at ordinal %s: %w", r.Ordinal, err)
		}
		line := struct {
			Ordinal events.Ordinal  `json:"ordinal"`
			Parent  events.Ordinal  `json:"parent,omitempty"`
			Event   json.RawMessage `json:"event"`
		}{r.Ordinal, of, body}
		if err := cli.PrintJSON(b.out, line); err != nil {
			return err
		}
		if err := b.json(r.Ordinal); err != nil {
			return err
		}
	}
	return nil
}
