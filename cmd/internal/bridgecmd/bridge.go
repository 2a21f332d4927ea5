// Package bridgecmd is the command tree of gateway-bridge, which brings messages in,
// carries replies out, and runs agent hosts.
package bridgecmd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"keryx/client"
	"keryx/cmd/internal/run"
	"keryx/cmd/internal/services"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/observe"
)

type flags struct {
	url, http string
	creds     []string
	apiCreds  []string
	stdio     bool
	chat      services.ChatFlags
	edge      services.EdgeFlags
	log       run.Log
	// platforms is a file of accounts at chat platforms; accounts is what it says.
	platforms string
	accounts  *services.Platforms
}

// New returns the command.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "gateway-bridge --url URL --creds FILE [--creds FILE] [--stdio]",
		Short: "Bring messages into sessions and carry replies out",
		Long: `Bring messages into sessions and carry replies out.

With credentials of role gateway and --stdio it holds a conversation over standard
input and output, as 'bus up' does: a chat on a terminal; on pipes each line is a
message and replies alone go to standard output.

With credentials of role host it runs the built-in host 'shell', which runs each
message by /bin/sh -c in the session's target. Both may be given; each has a
connection of its own.

With --platforms it joins the accounts of a file to sessions: plugin processes that speak
lines of JSON, and webhooks, which come in at --api. Bridges with the same credentials and
accounts stand by for each other.

With --api it serves the HTTP API to callers with a bearer token ('bus token add'), for
whom it acts as the principals of --api-creds: a gateway, and, for tokens of these roles,
a host and an operator.`,
		Example: `  gateway-bridge --url nats://127.0.0.1:4222 --creds web.creds --stdio --key cli:mine
  gateway-bridge --url nats://127.0.0.1:4222 --creds shell.creds
  gateway-bridge --url nats://127.0.0.1:4222 --api 127.0.0.1:8080 --api-creds edge.creds --api-creds edge-host.creds`,
		Args:    cobra.NoArgs,
		Version: cli.Version(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.url, "url", "", "URL of the bus (required)")
	fs.StringArrayVar(&f.creds, "creds", nil, "credentials file of role gateway or host (required; may be repeated)")
	fs.BoolVar(&f.stdio, "stdio", false, "hold a conversation over standard input and output")
	fs.StringVar(&f.platforms, "platforms", "", "YAML file of accounts at chat platforms to serve (docs/platforms.md); needs credentials of role gateway")
	fs.StringVar(&f.http, "http", "", "loopback host:port for /healthz and /readyz; default: none")
	fs.StringArrayVar(&f.apiCreds, "api-creds", nil, "credentials file as which --api acts: of role gateway, host or operator (may be repeated)")
	f.chat.Flags(cmd)
	f.chat.ApprovalFlags(cmd)
	f.edge.Flags(cmd, "")
	f.log.Flags(cmd, "warn")
	cmd.AddCommand(run.HealthOf("gateway-bridge"))
	return cmd
}

// roles are the credentials given, one of each role at most.
type roles map[events.Role]client.Credentials

func (f *flags) read() (roles, error) {
	if f.url == "" || len(f.creds)+len(f.apiCreds) == 0 {
		return nil, cli.Usagef("--url and --creds or --api-creds are needed")
	}
	out, err := readRoles(f.creds, events.RoleGateway, events.RoleHost)
	if err != nil {
		return nil, err
	}
	_, gateway := out[events.RoleGateway]
	_, host := out[events.RoleHost]
	switch {
	case f.platforms != "" && !gateway:
		return nil, cli.Usagef("--platforms needs credentials of the role gateway")
	case f.stdio && !gateway:
		return nil, cli.Usagef("--stdio needs credentials of the role gateway")
	case (f.edge.Addr != "") != (len(f.apiCreds) > 0):
		return nil, cli.Usagef("--api and --api-creds go together")
	case !f.stdio && f.platforms == "" && gateway && !host && f.edge.Addr == "":
		return nil, cli.Usagef("nothing to do: credentials of the role gateway need --stdio or --platforms")
	}
	return out, nil
}

// readRoles reads credentials files, one of each of these roles at most.
func readRoles(files []string, allowed ...events.Role) (roles, error) {
	out := make(roles)
	for _, file := range files {
		c, err := client.ReadCredentials(file)
		if err != nil {
			return nil, err
		}
		if err := services.NeedRole(file, c, allowed...); err != nil {
			return nil, err
		}
		if _, twice := out[c.Principal.Role]; twice {
			return nil, cli.Usagef("two credentials have the role %s", c.Principal.Role)
		}
		out[c.Principal.Role] = c
	}
	return out, nil
}

// api is the HTTP edge; nil when it is not asked for.
func (f *flags) api(out io.Writer, log *slog.Logger) (*run.Principal, error) {
	if f.edge.Addr == "" {
		return nil, nil
	}
	creds, err := readRoles(f.apiCreds, events.RoleGateway, events.RoleHost, events.RoleOperator)
	if err != nil {
		return nil, err
	}
	if _, ok := creds[events.RoleGateway]; !ok {
		return nil, cli.Usagef("--api needs --api-creds of the role gateway")
	}
	cfg, err := f.edge.Config(log)
	if err != nil {
		return nil, err
	}
	if f.accounts != nil {
		cfg.Gateways = f.accounts.Hooks()
	}
	dials := make(map[events.Role]services.Dial)
	for role, c := range creds {
		dials[role] = services.Remote(f.url, c, log)
	}
	return services.Edge(dials, cfg, func(url string) {
		fmt.Fprintf(out, "HTTP API: %s (a token for it, on the bus's machine: bus token add NAME --role gateway)\n", url)
	}), nil
}

func (f *flags) run(cmd *cobra.Command) (err error) {
	creds, err := f.read()
	if err != nil {
		return err
	}
	out, cfg := cmd.ErrOrStderr(), run.Config{}
	var console *services.Console
	if f.stdio {
		if console, err = services.OpenConsole(cmd); err != nil {
			return fmt.Errorf("open console: %w", err)
		}
		defer func() { err = errors.Join(err, console.Close()) }()
		out, cfg.Interrupt, cfg.Force = console.Log, console.Interrupt, console.Restore
	}
	log, err := f.log.Logger(out)
	if err != nil {
		return err
	}
	cfg.Logger = log
	options, err := f.services(creds, console, out, log)
	if err != nil {
		return err
	}
	return run.App(cmd.Context(), cfg, options...)
}

// services are the host, the HTTP API and the conversation, as far as they are asked for.
func (f *flags) services(creds roles, console *services.Console, out io.Writer, log *slog.Logger) ([]fx.Option, error) {
	var all []*run.Principal
	if c, ok := creds[events.RoleHost]; ok {
		all = append(all, services.ShellHost(services.Remote(f.url, c, log), log))
	}
	if f.platforms != "" {
		accounts, err := services.ReadPlatforms(f.platforms, log)
		if err != nil {
			return nil, err
		}
		if len(accounts.Hooks()) > 0 && f.edge.Addr == "" {
			return nil, cli.Usagef("--platforms %s has webhooks, which come in at --api", f.platforms)
		}
		f.accounts = accounts
		all = append(all, accounts.Principal(services.Remote(f.url, creds[events.RoleGateway], log)))
	}
	api, err := f.api(out, log)
	if err != nil {
		return nil, err
	}
	if api != nil {
		all = append(all, api)
	}
	if console != nil {
		cfg, err := f.chat.Config(console.Surface, log)
		if err != nil {
			return nil, err
		}
		all = append(all, services.Chat(services.Remote(f.url, creds[events.RoleGateway], log), nil, cfg, console.Conversation))
	}
	ready := func() error {
		var errs []error
		for _, p := range all {
			errs = append(errs, p.Ready())
		}
		return errors.Join(errs...)
	}
	options := []fx.Option{fx.Supply(observe.HTTPConfig{Addr: f.http, Ready: ready, Logger: log}), observe.Module}
	for _, p := range all {
		options = append(options, p.Option())
	}
	return options, nil
}
