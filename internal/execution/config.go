package execution

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/privdir"
	"keryx/internal/redact"
	"keryx/internal/targets"
)

// Bus is what an executor needs of its connection; *client.Conn is one.
type Bus interface {
	// Do sends a command, again and again within the deadline of ctx, and decodes its
	// answer. Refusals are *[events.Error].
	Do(ctx context.Context, t events.Type, data, answer any) error
	Principal() events.Principal
	Instance() events.Instance
	NATS() *nats.Conn
}

// Config says what an executor offers: a Target, or Targets.
type Config struct {
	// Target is what is offered if neither Targets nor Changes say anything.
	Target events.TargetSpec
	// Targets are offered from the start, and Changes are all that is offered from then on.
	Targets []targets.Declaration
	Changes <-chan []targets.Declaration
	// CheckDir makes sure of runtime directories; its errors are *[events.Error]. Default
	// [privdir.Check].
	CheckDir func(path string, owner privdir.Owner) error
	// Home is where packages of the profile are installed, an absolute directory. The
	// targets of those that are enabled are offered beside the executor's own, whose names
	// win. Empty: setups are refused.
	Home string
	// LeaseTTL is how long the executor may be silent. 0: the bus's default.
	LeaseTTL time.Duration
	// SpoolDir keeps output that the bus has not stored, in files that nobody else can
	// read and that vanish with the process. Default: the system's temporary directory.
	SpoolDir string
	// SpoolBytes bounds the spool of one command. Default 256 MiB.
	SpoolBytes int64
	// Free says how many bytes the filesystem of SpoolDir has free: spools leave it 64 MiB,
	// and have 1 MiB each in any case. Nil asks it.
	Free func(dir string) (int64, error)
	// Environ is where the short list of variables comes from that commands get from
	// the executor. Nil: the process's environment.
	Environ []string
	// Secrets are taken out of output before anybody sees it; nil for none.
	Secrets *redact.File
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Bounds of the service.
const (
	defaultSpool = 256 << 20
	// minSpool holds a burst of chunks, so that sending never starves.
	minSpool = 1 << 20
	// endedKept is how many ended commands are remembered, so that an order told again
	// starts nothing.
	endedKept = 1 << 16
	// stopGrace bounds the grace of commands when the executor stops.
	stopGrace = 5 * time.Second
	// stopReports is how long reports may take after that.
	stopReports = 15 * time.Second
	// stopFarewell is how long withdrawing the target and releasing the lease may take.
	stopFarewell = 3 * time.Second
	// reportFor is how long a fact is reported until the bus takes it.
	reportFor = 12 * time.Hour
)

func (c Config) withDefaults() (Config, error) {
	if c.CheckDir == nil {
		c.CheckDir = privdir.Check
	}
	if len(c.Targets) == 0 && c.Changes == nil {
		c.Targets = []targets.Declaration{{Spec: c.Target}}
	}
	if c.SpoolDir == "" {
		c.SpoolDir = os.TempDir()
	}
	if c.SpoolBytes == 0 {
		c.SpoolBytes = defaultSpool
	}
	if c.SpoolBytes < minSpool {
		return c, errors.New("a spool has 1 MiB at least")
	}
	if c.Free == nil {
		c.Free = freeOf
	}
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, os.MkdirAll(c.SpoolDir, 0o700)
}
