package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"keryx/client"
	"keryx/cmd/internal/run"
	"keryx/events"
	"keryx/internal/dirwatch"
	"keryx/internal/execution"
	"keryx/internal/targetfile"
	"keryx/internal/targets"
)

// TargetsDir is where a profile's target files are, below the directory of the bus.
func TargetsDir(dir string, profile events.Profile) string {
	return filepath.Join(dir, "home", string(profile), "targets")
}

// HomeDir is a profile's home below the directory of the bus. It is made when something
// is put there.
func HomeDir(dir string, profile events.Profile) (string, error) {
	home, err := filepath.Abs(filepath.Join(dir, "home", string(profile)))
	if err != nil {
		return "", fmt.Errorf("find the home of profile %s: %w", profile, err)
	}
	return home, nil
}

// TargetFiles are the targets of an executor: those of files, and one of its own.
type TargetFiles struct {
	files targetfile.Files
	own   events.TargetSpec
	// beside: own is offered beside the files', unless one has its name; else only while
	// there is no file.
	beside bool
	seen   dirwatch.State
	first  []targets.Declaration
	log    *slog.Logger
}

// OpenTargets reads a directory of target files; "" is none. A file that cannot be used is
// an error: at a start there is no version before it that could stay in force.
func OpenTargets(dir string, own events.TargetSpec, beside bool, log *slog.Logger) (*TargetFiles, error) {
	t := &TargetFiles{files: targetfile.Files{Dir: dir}, own: own, beside: beside, log: log}
	if dir == "" {
		t.first = t.with(nil)
		return t, nil
	}
	t.seen = dirwatch.Look(t.watch())
	all, failed := t.files.Load()
	if len(failed) > 0 {
		return nil, fmt.Errorf("read targets: %w", errors.Join(failed...))
	}
	t.first = t.with(all)
	return t, nil
}

// NeedDirectory returns a usage error's reason if dir is not a directory; "" is none.
func NeedDirectory(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	return nil
}

func (t *TargetFiles) watch() dirwatch.Config {
	return dirwatch.Config{Dir: t.files.Dir, Match: targetfile.Match, Logger: t.log}
}

// with adds the executor's own target.
func (t *TargetFiles) with(all []targets.Declaration) []targets.Declaration {
	if len(all) > 0 && !t.beside {
		return all
	}
	for _, d := range all {
		if d.Spec.Name == t.own.Name {
			return all
		}
	}
	return append(all, targets.Declaration{Spec: t.own})
}

// serve runs an executor and follows the files until it ends.
func (t *TargetFiles) serve(ctx context.Context, c *client.Conn, cfg execution.Config) error {
	cfg.Targets = t.first
	if t.files.Dir == "" {
		return execution.Run(ctx, c, cfg)
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	changes := make(chan []targets.Declaration)
	cfg.Changes = changes
	watch.Go(func() {
		dirwatch.Run(watching, t.watch(), t.seen, func() { t.reload(watching, changes) })
	})
	return execution.Run(ctx, c, cfg)
}

func (t *TargetFiles) reload(ctx context.Context, changes chan<- []targets.Declaration) {
	all, failed := t.files.Load()
	for _, err := range failed {
		t.log.Error("target file not in force; its last good version is", "error", err)
	}
	t.log.Info("target files read", "dir", t.files.Dir, "targets", len(all), "broken", len(failed))
	select {
	case changes <- t.with(all):
	case <-ctx.Done():
	}
}

// Executor runs commands in targets.
func Executor(dial Dial, cfg execution.Config, files *TargetFiles) *run.Principal {
	return &run.Principal{Name: "executor", Dial: dial, Serve: func(ctx context.Context, c *client.Conn) error {
		return files.serve(ctx, c, cfg)
	}}
}
