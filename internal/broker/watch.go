package broker

import (
	"context"
	"sync"

	"keryx/internal/dirwatch"
)

// watcher reloads principals.yaml when it changes.
type watcher struct {
	b      *Broker
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// watchPrincipals outlives ctx, which is that of the start. What it has seen is nothing, so
// that the file is read once more: it may have changed since the start read it.
func watchPrincipals(ctx context.Context, b *Broker) *watcher {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &watcher{b: b, cancel: cancel}
	cfg := dirwatch.Config{
		Dir: b.cfg.Dir, Logger: b.cfg.Logger,
		Match: func(name string) bool { return name == principalsName },
	}
	w.done.Go(func() { dirwatch.Run(ctx, cfg, dirwatch.State{}, w.reload) })
	return w
}

// reload keeps the last good set when the file cannot be used: principals that work
// must not stop working because of a slip of the pen.
func (w *watcher) reload() {
	if err := w.b.Reload(); err != nil {
		w.b.cfg.Logger.Error("principals not changed; the last good ones stay in force", "error", err)
		return
	}
	w.b.cfg.Logger.Debug("principals reloaded")
}

func (w *watcher) close() {
	w.cancel()
	w.done.Wait()
}
