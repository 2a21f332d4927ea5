package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

const timeLayout = "2006-01-02 15:04:05"

func newSessions(g *global) *cobra.Command {
	var q events.SessionList
	var host string
	cmd := &cobra.Command{
		Use:     "sessions",
		Short:   "List the sessions of a profile",
		Example: "  bus sessions --open\n  bus sessions --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Host = events.PrincipalName(host)
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				if g.json {
					return listJSON(ctx, c, q, cmd.OutOrStdout())
				}
				return listTable(ctx, c, q, cmd.OutOrStdout())
			})
		},
	}
	cmd.Flags().BoolVar(&q.Open, "open", false, "only sessions whose epoch is open")
	cmd.Flags().StringVar(&host, "host", "", "only sessions that want this host")
	return cmd
}

func listJSON(ctx context.Context, c *client.Conn, q events.SessionList, w io.Writer) error {
	for s, err := range c.Sessions(ctx, q) {
		if err != nil {
			return err
		}
		if err := cli.PrintJSON(w, s); err != nil {
			return err
		}
	}
	return nil
}

func listTable(ctx context.Context, c *client.Conn, q events.SessionList, w io.Writer) error {
	t := cli.NewTable(w, "SESSION", "KEY", "EPOCH", "STATUS", "HOST", "TURNS", "WAITING", "LAST", "WAITS FOR")
	for s, err := range c.Sessions(ctx, q) {
		if err != nil {
			return err
		}
		t.Row(string(s.Session), strings.Join(s.Keys, ", "), s.Epoch.String(), string(s.Status), string(s.Host),
			fmt.Sprint(s.Turns), fmt.Sprint(s.Pending), s.LastAt.Local().Format(timeLayout), s.WaitingFor)
	}
	return t.Close()
}
