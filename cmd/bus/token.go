package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/tokens"
)

func newToken(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Bearer tokens of the HTTP edge"}
	return cli.Group(cmd, newTokenAdd(g), newTokenList(g), newTokenRevoke(g))
}

func newTokenAdd(g *global) *cobra.Command {
	var role string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "add NAME --role ROLE [--expires DURATION]",
		Short: "Make a token and print its secret, once",
		Long: `Make a token and print its secret, once.

The secret alone goes to standard output; the bus keeps only its SHA-256. A token works in
its profile and has the rights of its role: ` + strings.Join(tokenRoles(), ", ") + `. What is done with it
is recorded under its name, which is never given again.`,
		Example: `  bus token add web --role gateway
  bus token add ci --role observer --expires 720h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if role == "" {
				return cli.Usagef("--role is needed")
			}
			r, err := cli.OneOf("role", role, events.TokenRoles()...)
			if err != nil {
				return err
			}
			name := events.TokenName(args[0])
			if err := name.Validate(); err != nil {
				return &cli.UsageError{Err: err}
			}
			if expires < 0 || expires > 0 && expires < time.Millisecond {
				return cli.Usagef("--expires %s: at least 1ms", expires)
			}
			return g.addToken(cmd, events.AddToken{Name: name, Role: r, TTLMS: expires.Milliseconds()})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "what it may do: "+strings.Join(tokenRoles(), ", ")+" (required)")
	cmd.Flags().DurationVar(&expires, "expires", 0, "how long it is taken, e.g. 720h; default: until it is revoked")
	complete(cmd, "role", cobra.FixedCompletions(tokenRoles(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func tokenRoles() []string { return cli.Words(events.TokenRoles()) }

// addToken makes the secret here, so that it is nowhere but in what is printed.
func (g *global) addToken(cmd *cobra.Command, a events.AddToken) error {
	secret := tokens.NewSecret()
	a.Digest = tokens.Digest(secret)
	return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
		v, err := c.AddToken(ctx, a)
		if err != nil {
			return err
		}
		if g.json {
			return cli.PrintJSON(cmd.OutOrStdout(), struct {
				events.TokenView
				Secret string `json:"secret"`
			}{v, secret})
		}
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "token %s, role %s, %s; its secret is shown this once\n", v.Name, v.Role, lifeOf(v)); err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
		return err
	})
}

func lifeOf(v events.TokenView) string {
	if v.ExpiresAt.IsZero() {
		return "does not expire"
	}
	return "until " + v.ExpiresAt.Local().Format(time.RFC3339)
}

func newTokenList(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List tokens, ended ones too; secrets are kept nowhere",
		Example: "  bus token list\n  bus token list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				all, err := c.Tokens(ctx)
				if err != nil {
					return err
				}
				return g.printTokens(cmd, all)
			})
		},
	}
}

func (g *global) printTokens(cmd *cobra.Command, all []events.TokenView) error {
	if g.json {
		for _, v := range all {
			if err := cli.PrintJSON(cmd.OutOrStdout(), v); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(cmd.OutOrStdout(), "NAME", "ROLE", "STATE", "ADDED", "BY", "EXPIRES")
	for _, v := range all {
		expires := ""
		if !v.ExpiresAt.IsZero() {
			expires = v.ExpiresAt.Local().Format(time.DateTime)
		}
		t.Row(string(v.Name), string(v.Role), string(v.State), v.AddedAt.Local().Format(time.DateTime), string(v.AddedBy), expires)
	}
	return t.Close()
}

// tokenArg completes a token that can be revoked. A bus that cannot be reached completes
// nothing.
func (g *global) tokenArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeWithin)
	defer cancel()
	var found []string
	err := g.bus.With(ctx, slog.New(slog.DiscardHandler), func(c *client.Conn) error {
		all, err := c.Tokens(ctx)
		for _, v := range all {
			if v.State == events.TokenUsable && strings.HasPrefix(string(v.Name), prefix) {
				found = append(found, string(v.Name)+"\t"+string(v.Role))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

func newTokenRevoke(g *global) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "revoke NAME",
		Short:   "End a token for good; streams that it opened are cut",
		Example: `  bus token revoke web --reason 'the laptop is lost'`,
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: g.tokenArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				v, err := c.RevokeToken(ctx, events.TokenName(args[0]), reason)
				if err != nil {
					return err
				}
				if g.json {
					return cli.PrintJSON(cmd.OutOrStdout(), v)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "token %s revoked\n", v.Name)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}
