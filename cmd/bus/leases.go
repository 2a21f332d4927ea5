package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

func newLeases(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "leases",
		Short: "List the leases of a profile and who holds them",
		Long: `List the leases of a profile and who holds them.

STATE is held, or how the lease ended: released by its holder, expired because its holder
was silent for longer than TTL, revoked by an operator. AGE is the time since the bus saw
the record change: since the last renewal of a lease that is held.`,
		Example: "  bus leases\n  bus leases --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				all, err := c.Leases(ctx)
				if err != nil {
					return err
				}
				if g.json {
					for _, l := range all {
						if err := cli.PrintJSON(cmd.OutOrStdout(), l); err != nil {
							return err
						}
					}
					return nil
				}
				return printLeases(cmd, all)
			})
		},
	}
}

func printLeases(cmd *cobra.Command, all []events.LeaseView) error {
	t := cli.NewTable(cmd.OutOrStdout(), "KEY", "STATE", "HOLDER", "INSTANCE", "FENCE", "TTL", "AGE", "REASON")
	for _, l := range all {
		t.Row(l.Key.String(), string(l.State), string(l.Holder), string(l.Instance), l.Fence.String(),
			(time.Duration(l.TTLMS) * time.Millisecond).String(),
			(time.Duration(l.AgeMS) * time.Millisecond).Truncate(100*time.Millisecond).String(), l.Reason)
	}
	return t.Close()
}

func newLease(g *global) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "lease", Short: "One lease: take it away from its holder"}, newLeaseRevoke(g))
}

func newLeaseRevoke(g *global) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke KEY --reason TEXT",
		Short: "Take a lease away from its holder",
		Long: `Take a lease away from its holder.

KEY is as 'bus leases' prints it; the profile may be left out. The holder hears of it at
once: an executor starts nothing more, stops what it runs, reports the ends and gives the
target back; a session is detached from its host. Nobody else gets the lease before the
former holder has given it back or, if it cannot be reached, before its time is over.

The instance that lost the lease does not get it again; the same program started anew may.
To keep a principal out, remove it with 'bus user remove'.`,
		Example:           "  bus lease revoke target.local --reason 'moving to another machine'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.leaseArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return cli.Usagef("--reason is needed; it goes on record")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				key, err := leaseKey(args[0], c.Principal().Profile)
				if err != nil {
					return err
				}
				a, err := c.RevokeLease(ctx, key, reason)
				if err != nil {
					return err
				}
				if g.json {
					return cli.PrintJSON(cmd.OutOrStdout(), a)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "revoked %s from %s, fence %s\n", a.Key, a.Holder, a.Fence)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record and for the holder (required)")
	return cmd
}

// leaseKey reads a key whose profile may be left out.
func leaseKey(text string, own events.Profile) (events.LeaseKey, error) {
	full := text
	if strings.Count(text, ".") == 1 {
		full = string(own) + "." + text
	}
	key, err := events.ParseLeaseKey(full)
	if err != nil {
		return key, &cli.UsageError{Err: fmt.Errorf("%q is no lease; 'bus leases' lists them: %w", text, err)}
	}
	return key, nil
}

// leaseArg completes the key of a lease that can be revoked.
func (g *global) leaseArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeWithin)
	defer cancel()
	var found []string
	err := g.bus.With(ctx, quiet(), func(c *client.Conn) error {
		all, err := c.Leases(ctx)
		for _, l := range all {
			open := l.State == events.LeaseHeld || l.State == events.LeaseExpired
			if key := l.Key.String(); open && strings.HasPrefix(key, prefix) && len(found) < completions {
				found = append(found, key+"\t"+string(l.Holder))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
