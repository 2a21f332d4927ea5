package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/redact"
	"keryx/internal/replay"
)

// showFlags say how events look.
type showFlags struct {
	types []string
	utc   bool
	// showSecrets shows events as they are on record.
	showSecrets bool
}

func (f *showFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.types, "type", nil, "only types that match this glob, e.g. 'turn.*' (may be repeated)")
	cmd.Flags().BoolVar(&f.utc, "utc", false, "show times in UTC")
	cmd.Flags().BoolVar(&f.showSecrets, "show-secrets", false, "show all as it is on record, without hiding secrets")
	complete(cmd, "type", typeFlag)
}

// writer writes events to the command's output.
func (g *global) writer(cmd *cobra.Command, f showFlags, scope bool) (*replay.Writer, error) {
	w := g.plainWriter(cmd, f, scope)
	if f.showSecrets {
		return w, nil
	}
	rules, err := g.rules()
	w.Hide(func(r events.Record) events.Record { return redact.Record(rules, r) })
	return w, err
}

func (g *global) plainWriter(cmd *cobra.Command, f showFlags, scope bool) *replay.Writer {
	out := cmd.OutOrStdout()
	if g.json {
		return replay.NewJSONWriter(out)
	}
	return replay.NewWriter(out, g.lineOptions(cmd, f, scope))
}

// lineOptions say how lines look on the command's output.
func (g *global) lineOptions(cmd *cobra.Command, f showFlags, scope bool) replay.Options {
	out := cmd.OutOrStdout()
	o := replay.Options{Width: cli.Width(out), Color: cli.Colors(out), Location: time.Local, Scope: scope}
	if f.utc {
		o.Location = time.UTC
	}
	return o
}

func newEvents(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "events", Short: "Events as they happen"}
	return cli.Group(cmd, newTail(g))
}

func newTail(g *global) *cobra.Command {
	var f showFlags
	var session string
	var all bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show events as they happen, without gaps, until interrupted",
		Example: `  bus events tail
  bus events tail --session cli:local --type 'turn.*' --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := replay.FollowConfig{Query: replay.Query{Types: f.types}, FromTip: !all}
			if err := cfg.Validate(); err != nil {
				return &cli.UsageError{Err: err}
			}
			return g.followed(cmd, func(ctx context.Context, c *client.Conn) error {
				if session != "" {
					scope, err := scopeOf(ctx, c, session)
					if err != nil {
						return err
					}
					cfg.Scopes = []events.Scope{scope}
				}
				w, err := g.writer(cmd, f, session == "")
				if err != nil {
					return err
				}
				return replay.Tail(ctx, c, w, cfg)
			})
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "only this session: its id or a name of it")
	cmd.Flags().BoolVar(&all, "all", false, "begin with what is on record already")
	f.flags(cmd)
	complete(cmd, "session", g.sessionFlag)
	return cmd
}

// scopeOf resolves a session's id or name; _profile is the scope of the profile itself,
// account-NAME that of a gateway's account.
func scopeOf(ctx context.Context, c *client.Conn, to string) (events.Scope, error) {
	if to == string(events.ScopeProfile) {
		return events.ScopeProfile, nil
	}
	if account, ok := events.Scope(to).Account(); ok {
		if page, err := c.Page(ctx, account.Scope(), 0, 1); err == nil && len(page.Records) > 0 {
			return account.Scope(), nil
		}
	}
	found, err := c.Find(ctx, to)
	if err != nil {
		return "", err
	}
	if found.Imported {
		return events.ImportScope(found.Session), nil
	}
	return found.Session.Scope(), nil
}
