package dirwatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long files must be quiet before a change is told.
	settleTime = 50 * time.Millisecond
	// lookEvery bounds how late a change is seen where the kernel tells of none.
	lookEvery = 2 * time.Second
)

// Config says what to watch. Dir is needed.
type Config struct {
	Dir string
	// Match says by its name whether a file counts. Nil: each does.
	Match func(name string) bool
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// State is what files looked like. The zero value is that of no files.
type State struct{ marks map[string]fs.FileInfo }

// Look returns what the files look like now. Take it before they are read: what changes
// while they are read is a change, then.
func Look(cfg Config) State {
	s := State{marks: map[string]fs.FileInfo{}}
	entries, err := os.ReadDir(cfg.Dir)
	if err != nil {
		return s // not there, or not to be read: as if empty
	}
	for _, e := range entries {
		if cfg.Match != nil && !cfg.Match(e.Name()) {
			continue
		}
		// What a link leads to is what is read.
		if info, err := os.Stat(filepath.Join(cfg.Dir, e.Name())); err == nil {
			s.marks[e.Name()] = info
		}
	}
	return s
}

func (s State) same(o State) bool {
	if len(s.marks) != len(o.marks) {
		return false
	}
	for name, a := range s.marks {
		b, ok := o.marks[name]
		if !ok || !os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || a.Mode() != b.Mode() {
			return false
		}
	}
	return true
}

// watch is one watching.
type watch struct {
	cfg    Config
	seen   State
	notify *fsnotify.Watcher
	adding bool // the directory is watched by notify
}

// Run calls changed whenever the files no longer look like what they did, seen at first,
// until ctx ends. It blocks; changed is called on its goroutine.
func Run(ctx context.Context, cfg Config, seen State, changed func()) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	w := &watch{cfg: cfg, seen: seen}
	if err := w.open(); err != nil {
		cfg.Logger.Warn("no file watch; looking by the clock", "dir", cfg.Dir, "every", lookEvery, "error", err)
	}
	defer w.close()
	w.run(ctx, changed)
}

func (w *watch) open() error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("make file watch: %w", err)
	}
	w.notify = notify
	return w.add()
}

// add watches the directory, not its files: a rewrite puts a new file in the place of the
// old one. One that is not there yet is tried again.
func (w *watch) add() error {
	if w.notify == nil || w.adding {
		return nil
	}
	err := w.notify.Add(w.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.cfg.Dir, err)
	}
	w.adding = true
	return nil
}

func (w *watch) close() {
	if w.notify == nil {
		return
	}
	if err := w.notify.Close(); err != nil {
		w.cfg.Logger.Warn("close file watch", "error", err)
	}
}

func (w *watch) run(ctx context.Context, changed func()) {
	settle := time.NewTimer(0) // it may have changed before the watch
	defer settle.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var told chan fsnotify.Event
	var failed chan error
	if w.notify != nil {
		told, failed = w.notify.Events, w.notify.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-told:
			w.note(e, settle)
		case err := <-failed:
			w.cfg.Logger.Warn("file watch", "dir", w.cfg.Dir, "error", err)
		case <-look.C:
			w.again(settle)
		case <-settle.C:
			w.compare(changed)
		}
	}
}

func (w *watch) note(e fsnotify.Event, settle *time.Timer) {
	name := filepath.Base(e.Name)
	if filepath.Clean(e.Name) == filepath.Clean(w.cfg.Dir) {
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			w.adding = false // it is watched anew once it is there again
		}
		settle.Reset(settleTime)
		return
	}
	if w.cfg.Match == nil || w.cfg.Match(name) {
		settle.Reset(settleTime)
	}
}

// again looks by the clock. A change is told when the files were quiet since the look
// before, which settle sees to.
func (w *watch) again(settle *time.Timer) {
	if err := w.add(); err != nil {
		w.cfg.Logger.Debug("watch a directory", "error", err)
	}
	if !Look(w.cfg).same(w.seen) {
		settle.Reset(settleTime)
	}
}

func (w *watch) compare(changed func()) {
	now := Look(w.cfg)
	if now.same(w.seen) {
		return
	}
	w.seen = now
	changed()
}
