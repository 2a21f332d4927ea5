package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"keryx/cmd/internal/run"
	"keryx/internal/broker"
	"keryx/internal/cli"
	"keryx/internal/headroom"
	"keryx/internal/node"
	"keryx/internal/observe"
)

// nodeFlags say how a bus serves.
type nodeFlags struct {
	listen, sync, http string
	acceptLoss         bool
	retain             time.Duration
	log                run.Log
}

func (f *nodeFlags) flags(cmd *cobra.Command, logLevel string) {
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "", "host:port for other processes; default: a free port on loopback")
	fs.StringVar(&f.sync, "sync", "always", "when appends reach the disk: always (before each answer) or interval (each second)")
	fs.BoolVar(&f.acceptLoss, "accept-loss", false, "serve a store that has lost messages; this is recorded")
	fs.DurationVar(&f.retain, "retain", 30*24*time.Hour, "how long an epoch's events are kept after the next has begun; 0 for ever")
	fs.StringVar(&f.http, "http", "127.0.0.1:0", "loopback host:port for /healthz and /readyz, written to DIR/run/http; empty for none")
	f.log.Flags(cmd, logLevel)
	complete(cmd, "sync", cobra.FixedCompletions([]string{"always", "interval"}, cobra.ShellCompDirectiveNoFileComp))
}

// config returns the node's configuration for a directory.
func (f *nodeFlags) config(g *global, log *slog.Logger) (node.Config, error) {
	if g.bus.URL != "" || g.bus.Creds != "" {
		return node.Config{}, cli.Usagef("a bus serves a directory: --url and --creds do not go with this command")
	}
	cfg := node.Config{Dir: g.bus.Dir, Listen: f.listen, AcceptLoss: f.acceptLoss, Retain: f.retain, Logger: log}
	if f.retain < 0 {
		return cfg, cli.Usagef("--retain is %v; it cannot be negative", f.retain)
	}
	switch f.sync {
	case "always":
		cfg.Sync = broker.SyncAlways
	case "interval":
		cfg.Sync = broker.SyncInterval
	default:
		return cfg, cli.Usagef("--sync is %q; it can be always or interval", f.sync)
	}
	return cfg, nil
}

// errNotActive is why a bus that is up is not ready.
var errNotActive = errors.New("no authority is active")

// gcPercent keeps a bus small beside what it stores, unless GOGC says otherwise: output
// comes and goes by 64 KiB, and with Go's 100 % a flood of it took 95 MB, with 50 % 54 MB
// (measured, 58 to 128 MiB of output on a busy machine with two viewers).
const gcPercent = 50

// options are the node and its health checks.
func (f *nodeFlags) options(cfg node.Config) fx.Option {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return fx.Options(fx.Supply(cfg), node.Module, observe.Module, fx.Invoke(keepSmall),
		fx.Provide(func(h *node.Handle) observe.HTTPConfig {
			return observe.HTTPConfig{
				Addr: f.http, RunFile: filepath.Join(cfg.Dir, "run", "http"), Logger: cfg.Logger,
				Ready: func() error {
					if n := h.Node(); n == nil || !n.Ready() {
						return errNotActive
					}
					return nil
				},
			}
		}))
}

// keepSmall keeps a bus small while output floods it, unless GOGC or GOMEMLIMIT say what it
// may take.
func keepSmall(life fx.Lifecycle) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	var keeping sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	life.Append(fx.StartStopHook(
		func() { keeping.Go(func() { headroom.Keep(ctx, gcPercent) }) },
		func() { cancel(); keeping.Wait() },
	))
}

func newServe(g *global) *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a bus, for executors, hosts and gateways in processes of their own",
		Long: `Serve a bus, for executors, hosts and gateways in processes of their own.

Principals are added by 'bus user add', also while the bus runs. SIGINT or SIGTERM
stops it cleanly; a second one ends it at once.`,
		Example: `  bus serve --dir /var/lib/keryx --listen 127.0.0.1:4222`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := f.log.Logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			cfg, err := f.config(g, log)
			if err != nil {
				return err
			}
			return run.App(cmd.Context(), run.Config{Logger: log}, f.options(cfg))
		},
	}
	f.flags(cmd, "info")
	return cmd
}
