package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long principals.yaml must be quiet before it is read: an editor
	// writes in several steps.
	settleTime = 50 * time.Millisecond
	// lookEvery bounds how late a change is seen where the kernel reports none, as on
	// network file systems or when its watches are used up.
	lookEvery = 2 * time.Second
)

// watcher reloads principals.yaml when it changes.
type watcher struct {
	b      *Broker
	notify *fsnotify.Watcher // nil when the kernel has no watch to give
	cancel context.CancelFunc
	done   sync.WaitGroup
	seen   fileMark
}

// fileMark tells two states of a file apart.
type fileMark struct {
	info fs.FileInfo
}

func markOf(path string) fileMark {
	info, err := os.Stat(path)
	if err != nil {
		return fileMark{}
	}
	return fileMark{info}
}

func (m fileMark) same(o fileMark) bool {
	if m.info == nil || o.info == nil {
		return m.info == o.info
	}
	return os.SameFile(m.info, o.info) && m.info.Size() == o.info.Size() && m.info.ModTime().Equal(o.info.ModTime())
}

// watchPrincipals watches the directory, not the file, because a rewrite puts a new
// file in the place of the old one. It outlives ctx, which is that of the start.
func watchPrincipals(ctx context.Context, b *Broker) (*watcher, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &watcher{b: b, cancel: cancel}
	if err := w.subscribe(); err != nil {
		b.cfg.Logger.Warn("no file watch; looking at the principals by the clock", "every", lookEvery, "error", err)
	}
	w.done.Go(func() { w.run(ctx) })
	return w, nil
}

func (w *watcher) subscribe() error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("make file watch: %w", err)
	}
	if err := notify.Add(w.b.cfg.Dir); err != nil {
		return errors.Join(fmt.Errorf("watch %s: %w", w.b.cfg.Dir, err), notify.Close())
	}
	w.notify = notify
	return nil
}

// run reloads once the file has been quiet for settleTime.
func (w *watcher) run(ctx context.Context) {
	w.reloadIfChanged() // it may have changed between the start's reading and the watch
	settle := time.NewTimer(time.Hour)
	settle.Stop()
	defer settle.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var changed chan fsnotify.Event
	var failed chan error
	if w.notify != nil {
		changed, failed = w.notify.Events, w.notify.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-changed:
			if filepath.Base(e.Name) == principalsName {
				settle.Reset(settleTime)
			}
		case err := <-failed:
			w.b.cfg.Logger.Warn("file watch", "error", err)
		case <-look.C:
			w.reloadIfChanged()
		case <-settle.C:
			w.reload()
		}
	}
}

// reloadIfChanged reloads if the file looks different.
func (w *watcher) reloadIfChanged() {
	if !markOf(w.path()).same(w.seen) {
		w.reload()
	}
}

func (w *watcher) path() string { return filepath.Join(w.b.cfg.Dir, principalsName) }

// reload keeps the last good set when the file cannot be used: principals that work
// must not stop working because of a slip of the pen.
func (w *watcher) reload() {
	w.seen = markOf(w.path())
	if err := w.b.Reload(); err != nil {
		w.b.cfg.Logger.Error("principals not changed; the last good ones stay in force", "error", err)
		return
	}
	w.b.cfg.Logger.Debug("principals reloaded")
}

func (w *watcher) close() error {
	w.cancel()
	w.done.Wait()
	if w.notify == nil {
		return nil
	}
	if err := w.notify.Close(); err != nil {
		return fmt.Errorf("close file watch: %w", err)
	}
	return nil
}
