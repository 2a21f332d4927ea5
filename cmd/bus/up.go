package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"keryx/client"
	"keryx/cmd/internal/run"
	"keryx/cmd/internal/services"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/execution"
	"keryx/internal/node"
	"keryx/internal/redact"
)

// Principals of a bus that runs everything in one process.
const (
	upHost     events.PrincipalName = "shell"
	upExecutor events.PrincipalName = "local"
	upGateway  events.PrincipalName = "cli"
)

// upEdge are the principals as which the HTTP edge acts for tokens.
var upEdge = map[events.Role]events.PrincipalName{
	events.RoleGateway: "edge", events.RoleHost: "edge-host", events.RoleOperator: "edge-operator",
}

type upFlags struct {
	nodeFlags
	chat services.ChatFlags
	edge services.EdgeFlags
}

func newUp(g *global) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a bus, an executor, the shell host and a chat in this process",
		Long: `Run a bus, an executor, the shell host and a chat in this process.

On a terminal it is a chat: each line is a message to the session, which the shell host
runs by /bin/sh -c; output streams in as it comes. /help lists commands; /bg runs one in
the background, in your name, and the session is told of its end. Ctrl-C interrupts the
running turn, Ctrl-D leaves, and what runs in the background ends with it.

With piped input each line is one message; replies alone go to standard output, in
order, everything else to standard error. At the end of input it waits until all turns
have ended. The exit code is 0 if all of them completed, else 1.

The HTTP API is served on loopback, on a free port unless --api says which; the address is
printed and in DIR/run/api. 'bus token add' makes tokens for it.

The same --dir and --key go on with the same session.

Beside the target "local", it offers those of the files in DIR/home/PROFILE/targets, see
docs/targets.md; "bus targets" lists them. Packages are installed in DIR/home/PROFILE, see
docs/setup.md.`,
		Example: `  bus up
  printf 'echo hello\necho $((6*7))\n' | bus up --dir ./state --key cli:script`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, g) },
	}
	f.flags(cmd, "warn")
	f.chat.Flags(cmd)
	f.edge.Flags(cmd, "127.0.0.1:0")
	return cmd
}

func (f *upFlags) run(cmd *cobra.Command, g *global) (err error) {
	// Commands run in this process's children, which can read how it was started.
	if err := execution.Reexec("XDG_STATE_HOME", "NO_COLOR"); err != nil {
		return err
	}
	profile, err := g.bus.ProfileName()
	if err != nil {
		return err
	}
	if _, err := f.config(g, nil); err != nil {
		return err
	}
	console, err := services.OpenConsole(cmd)
	if err != nil {
		return fmt.Errorf("open console: %w", err)
	}
	defer func() { err = errors.Join(err, console.Close()) }()
	log, err := f.log.Logger(console.Log)
	if err != nil {
		return err
	}
	options, err := f.services(cmd, g, profile, console, log)
	if err != nil {
		return err
	}
	return run.App(cmd.Context(), run.Config{
		Interrupt: console.Interrupt, Force: console.Restore, Logger: log,
	}, options)
}

// services start in this order and stop in the reverse: the chat first, then the edge, then
// the host, which detaches, then the executor, then the bus.
func (f *upFlags) services(cmd *cobra.Command, g *global, profile events.Profile, console *services.Console, log *slog.Logger) (fx.Option, error) {
	cfg, err := f.config(g, log)
	if err != nil {
		return nil, err
	}
	chat, err := f.chat.Config(console.Surface, log)
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	target, err := services.Target("local", cwd)
	if err != nil {
		return nil, err
	}
	secrets, err := redact.Open(g.secretsFile(), log)
	if err != nil {
		return nil, secretRefusal(err)
	}
	home, err := services.HomeDir(g.bus.Dir, profile)
	if err != nil {
		return nil, err
	}
	files, err := services.OpenTargets(services.TargetsDir(g.bus.Dir, profile), target, true, log)
	if err != nil {
		return nil, err
	}
	edge, err := f.edge.Config(log)
	if err != nil {
		return nil, err
	}
	edge.RunFile = filepath.Join(g.bus.Dir, "run", "api")
	var bus *node.Handle
	embedded := func(name events.PrincipalName, role events.Role) services.Dial {
		return func(ctx context.Context) (*client.Conn, error) {
			return bus.Node().Connect(ctx, events.Principal{Profile: profile, Name: name, Role: role})
		}
	}
	dials := make(map[events.Role]services.Dial)
	for role, name := range upEdge {
		dials[role] = func(ctx context.Context) (*client.Conn, error) {
			return bus.Node().ConnectForOthers(ctx, events.Principal{Profile: profile, Name: name, Role: role})
		}
	}
	announce := func(url string) {
		fmt.Fprintf(console.Log, "HTTP API: %s (a token for it: bus token add NAME --role gateway%s)\n", url, g.where(cmd))
	}
	return fx.Options(f.options(cfg), fx.Populate(&bus),
		services.Executor(embedded(upExecutor, events.RoleExecutor), execution.Config{Home: home, Secrets: secrets, Logger: log}, files).Option(),
		services.ShellHost(embedded(upHost, events.RoleHost), log).Option(),
		services.Edge(dials, edge, announce).Option(),
		// Whoever sits here has started the bus: that is the operator.
		services.Chat(embedded(upGateway, events.RoleGateway), embedded(broker.OperatorName, events.RoleOperator), chat, console.Conversation).Option(),
	), nil
}

// where are the flags with which another command finds this bus.
func (g *global) where(cmd *cobra.Command) string {
	text := ""
	for _, name := range []string{"dir", "profile"} {
		if flag := cmd.Flag(name); flag != nil && flag.Changed {
			text += " --" + name + " " + flag.Value.String()
		}
	}
	return text
}
