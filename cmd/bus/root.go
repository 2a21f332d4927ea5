package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/internal/cli"
	"keryx/schemas"
)

// global are the flags of every command.
type global struct {
	bus  cli.Bus
	json bool
	// secrets is the file of registered secrets; empty for that of the bus directory.
	secrets string
}

func newRoot() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use:   "bus",
		Short: "A session bus for agents",
		Long: `A session bus for agents.

Every conversation has one durable identity, one owner at a time, a place to run
commands, and a complete record. 'bus up' starts everything in one process.

A command finds its bus by --dir: it asks the one that runs there, or opens the store
itself when none does. --url and --creds reach a bus on another machine.

Errors are one line on standard error, with a code; the exit code is 1, or 2 when the
command was called wrongly.`,
		Example: `  bus up
  printf 'echo hello\n' | bus up --key cli:script
  bus sessions
  bus replay cli:local`,
		Version: cli.Version(),
	}
	g.bus.Flags(root)
	root.PersistentFlags().BoolVar(&g.json, "json", false, "print one JSON object a line")
	root.PersistentFlags().StringVar(&g.secrets, "secrets", "", "file of registered secrets to hide; default: secrets.json of --dir")
	return cli.Group(root,
		newUp(g), newServe(g), newUser(g), newToken(g), newSessions(g), newSession(g),
		newSubmit(g), newReceipt(g), newQueue(g), newEdit(g), newCancel(g), newRequeue(g), newDiscard(g), newTurns(g), newTurn(g),
		newApprovals(g), newApprove(g), newDeny(g),
		newWhy(g),
		newExec(g), newAttach(g), newPs(g), newKill(g), newOutput(g), newTargets(g), newLeases(g), newLease(g),
		newPackage(g), newSetup(g), newEvents(g), newReplay(g), newExport(g), newImport(g), newSecret(g), newDead(g), newBackup(g), newDoctor(g), newRestore(g), newVersion(g),
		newSchema(g), newHealth(g))
}

// followed is connected for what goes on without an end.
func (g *global) followed(cmd *cobra.Command, f func(context.Context, *client.Conn) error) error {
	return g.running(cmd, "nothing new can come; 'bus replay' tells what is there", f)
}

// running is connected for what only a running bus can do; otherwise says what follows from
// there being none.
func (g *global) running(cmd *cobra.Command, otherwise string, f func(context.Context, *client.Conn) error) error {
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
	return cli.Interruptible(cmd.Context(), func(ctx context.Context) error {
		return g.bus.WithRunning(ctx, log, otherwise, func(c *client.Conn) error { return f(ctx, c) })
	})
}

// connected runs f on a connection, until done or a signal comes.
func (g *global) connected(cmd *cobra.Command, f func(context.Context, *client.Conn) error) error {
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
	return cli.Interruptible(cmd.Context(), func(ctx context.Context) error {
		return g.bus.With(ctx, log, func(c *client.Conn) error { return f(ctx, c) })
	})
}

func newVersion(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the hash of the set of schemas",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if g.json {
				return cli.PrintJSON(cmd.OutOrStdout(), struct {
					Version string `json:"version"`
					Schemas string `json:"schemas"`
				}{cli.Version(), schemas.SetHash()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "bus %s, schemas %.12s\n", cli.Version(), schemas.SetHash())
			return err
		},
	}
}
