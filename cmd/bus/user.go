package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/cli"
)

func newUser(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Principals: who may connect, and as what"}
	return cli.Group(cmd, newUserAdd(g), newUserRemove(g))
}

func newUserAdd(g *global) *cobra.Command {
	var role, out string
	cmd := &cobra.Command{
		Use:   "add NAME --role ROLE --out FILE",
		Short: "Make a principal's key: the secret into a file, the public part into the bus directory",
		Long: `Make a principal's key: the secret into a file, the public part into the bus directory.

The file has mode 0600 and is never overwritten. A running bus takes the new principal
at once. Roles: ` + roleList() + `.`,
		Example: `  bus user add web --role gateway --profile default --out web.creds`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := g.principal(args[0], role)
			if err != nil {
				return err
			}
			if out == "" {
				return cli.Usagef("--out is needed")
			}
			if err := broker.CreateUser(g.bus.Dir, p, out); err != nil {
				return err
			}
			return g.printUser(cmd, p, out)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "what it may do: "+roleList()+" (required)")
	cmd.Flags().StringVar(&out, "out", "", "new file for the credentials (required)")
	roles := strings.Split(roleList(), ", ")
	complete(cmd, "role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func roleList() string {
	var out []string
	for _, r := range events.Roles() {
		out = append(out, string(r))
	}
	return strings.Join(out, ", ")
}

// principal checks who is meant.
func (g *global) principal(name, role string) (events.Principal, error) {
	if g.bus.URL != "" || g.bus.Creds != "" {
		return events.Principal{}, cli.Usagef("principals are kept in the bus directory: --url and --creds do not go with this command")
	}
	p := events.Principal{Profile: events.Profile(g.bus.Profile), Name: events.PrincipalName(name), Role: events.Role(role)}
	if err := p.Validate(); err != nil {
		return p, &cli.UsageError{Err: err}
	}
	return p, nil
}

func (g *global) printUser(cmd *cobra.Command, p events.Principal, file string) error {
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), struct {
			events.Principal
			File string `json:"file"`
		}{p, file})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s of profile %s: credentials in %s\n", p.Role, p.Name, p.Profile, file)
	return err
}

func newUserRemove(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Take a principal's right to connect; its connections are cut",
		Example: `  bus user remove web --profile default`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := g.principal(args[0], string(events.RoleObserver)) // the role does not matter
			if err != nil {
				return err
			}
			if err := broker.RemovePrincipal(g.bus.Dir, p.Profile, p.Name); err != nil {
				return err
			}
			if g.json {
				return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"profile": string(p.Profile), "name": string(p.Name)})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s of profile %s removed\n", p.Name, p.Profile)
			return err
		},
	}
}
