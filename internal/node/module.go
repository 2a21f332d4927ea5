package node

import (
	"context"

	"go.uber.org/fx"
)

// Module provides a *Node from a [Config] and starts and stops it with the app. If the
// authority ends by itself the app is shut down with exit code 1.
var Module = fx.Module("node", fx.Provide(provide))

func provide(lc fx.Lifecycle, sd fx.Shutdowner, cfg Config) *Handle {
	h := &Handle{}
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			n, err := Start(ctx, cfg)
			if err != nil {
				return err
			}
			h.node = n
			h.watch(sd)
			return nil
		},
		OnStop: h.stop,
	})
	return h
}

// Handle is a node that exists once the app has started.
type Handle struct {
	node    *Node
	watched chan struct{}
}

// Node returns the node; nil before the app has started.
func (h *Handle) Node() *Node { return h.node }

func (h *Handle) watch(sd fx.Shutdowner) {
	h.watched = make(chan struct{})
	go func() {
		defer close(h.watched)
		if err := <-h.node.Failed(); err != nil {
			_ = sd.Shutdown(fx.ExitCode(1)) // an app that is stopping already needs no more
		}
	}()
}

func (h *Handle) stop(ctx context.Context) error {
	if h.node == nil {
		return nil
	}
	err := h.node.Stop(ctx)
	<-h.watched
	return err
}
