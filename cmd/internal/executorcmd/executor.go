// Package executorcmd is the command tree of executor, which runs commands in targets.
package executorcmd

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"keryx/client"
	"keryx/cmd/internal/run"
	"keryx/cmd/internal/services"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/execution"
	"keryx/internal/observe"
	"keryx/internal/redact"
)

type flags struct {
	url, creds, target, targets, cwd, spool, home, http, secrets string
	onLoss                                                       string
	leaseTTL                                                     time.Duration
	log                                                          run.Log
}

// New returns the command.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "executor --url URL --creds FILE",
		Short: "Run commands of sessions in targets of this machine",
		Long: `Run commands of sessions in targets of this machine.

The executor holds the lease of each target for as long as it runs. SIGINT or SIGTERM stops
it cleanly: commands are stopped and their ends reported. A second one ends it at once.

With --targets it offers what the files of a directory declare, see docs/targets.md. A file
that changes makes a new generation of its target; what runs goes on under the old one. A
file that is broken is an error at the start, and later leaves its last good version in
force, which "bus targets" shows. "bus targets check FILE..." says what is wrong.

It starts itself anew without most of its environment, so that no command can read from
it what was meant for the executor alone.`,
		Example: `  bus user add runner --role executor --out runner.creds
  executor --url nats://127.0.0.1:4222 --creds runner.creds --target local --cwd /srv/work
  executor --url nats://127.0.0.1:4222 --creds runner.creds --targets /etc/keryx/targets`,
		Args:    cobra.NoArgs,
		Version: cli.Version(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.url, "url", "", "URL of the bus (required)")
	fs.StringVar(&f.creds, "creds", "", "credentials file of role executor (required)")
	fs.StringVar(&f.targets, "targets", "", "directory of target files (*.yaml), followed while it runs; default: none")
	fs.StringVar(&f.target, "target", "local", "name of the target that is offered while no file declares one")
	fs.StringVar(&f.cwd, "cwd", "", "directory in which that target's commands start; default: this one")
	fs.StringVar(&f.spool, "spool", "", "directory for output that the bus has not stored; default: the system's temporary one")
	fs.DurationVar(&f.leaseTTL, "lease-ttl", 0, "how long the executor may be silent before another may have the target, 2s to 1h; default: the bus's, 15s")
	fs.StringVar(&f.onLoss, "on-lease-loss", "", "what becomes of running commands when that is over: keep (the default) or kill")
	fs.StringVar(&f.secrets, "secrets", "", "file of registered secrets ('bus secret') to take out of output; default: none")
	fs.StringVar(&f.home, "home", "", "directory in which packages of the profile are installed; default: none are")
	fs.StringVar(&f.http, "http", "", "loopback host:port for /healthz and /readyz; default: none")
	f.log.Flags(cmd, "info")
	if err := cmd.RegisterFlagCompletionFunc("on-lease-loss", cobra.FixedCompletions(
		[]string{string(events.OnLeaseLossKeep), string(events.OnLeaseLossKill)}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist: a fault of this program
	}
	cmd.AddCommand(run.HealthOf("executor"))
	return cmd
}

func (f *flags) run(cmd *cobra.Command) error {
	if f.url == "" || f.creds == "" {
		return cli.Usagef("--url and --creds are needed")
	}
	if err := execution.Reexec(); err != nil {
		return err
	}
	log, err := f.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	creds, err := client.ReadCredentials(f.creds)
	if err != nil {
		return err
	}
	if err := services.NeedRole(f.creds, creds, events.RoleExecutor); err != nil {
		return err
	}
	cwd, err := directory(f.cwd)
	if err != nil {
		return err
	}
	home, err := homeDir(f.home)
	if err != nil {
		return err
	}
	target, err := services.Target(f.target, cwd)
	if err != nil {
		return err
	}
	if err := f.lease(&target); err != nil {
		return err
	}
	secrets, err := f.openSecrets(log)
	if err != nil {
		return err
	}
	if err := services.NeedDirectory(f.targets); err != nil {
		return cli.Usagef("--targets: %v", err)
	}
	files, err := services.OpenTargets(f.targets, target, false, log)
	if err != nil {
		return err
	}
	executor := services.Executor(services.Remote(f.url, creds, log), execution.Config{
		Home: home, LeaseTTL: f.leaseTTL, SpoolDir: f.spool, Secrets: secrets, Logger: log,
	}, files)
	return run.App(cmd.Context(), run.Config{Logger: log},
		executor.Option(),
		fx.Supply(observe.HTTPConfig{Addr: f.http, Ready: executor.Ready, Logger: log}), observe.Module)
}

// lease takes what is said about the target's lease.
func (f *flags) lease(target *events.TargetSpec) error {
	if f.leaseTTL != 0 && (f.leaseTTL < 2*time.Second || f.leaseTTL > time.Hour || f.leaseTTL%time.Millisecond != 0) {
		return cli.Usagef("--lease-ttl %v is not 2s to 1h in whole milliseconds", f.leaseTTL)
	}
	target.OnLeaseLoss = events.OnLeaseLoss(f.onLoss)
	switch target.OnLeaseLoss {
	case "", events.OnLeaseLossKeep, events.OnLeaseLossKill:
		return nil
	}
	return cli.Usagef("--on-lease-loss %q is neither keep nor kill", f.onLoss)
}

// openSecrets opens the file that was named; without it nothing would be hidden.
func (f *flags) openSecrets(log *slog.Logger) (*redact.File, error) {
	if f.secrets == "" {
		return nil, nil
	}
	if _, err := os.Stat(f.secrets); err != nil {
		return nil, fmt.Errorf("open secrets: %w", err)
	}
	return redact.Open(f.secrets, log)
}

// homeDir returns the directory for packages, made if need be; "" for none.
func homeDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the home of packages: %w", err)
	}
	return directory(dir)
}

// directory returns an absolute, existing directory; the working directory for "".
func directory(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find directory %q: %w", dir, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("look at directory: %w", err)
	}
	if !info.IsDir() {
		return "", cli.Usagef("%s is not a directory", abs)
	}
	return abs, nil
}
