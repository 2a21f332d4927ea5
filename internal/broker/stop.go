package broker

import (
	"context"
	"errors"
	"fmt"
)

// Stop ends the broker: it grants no more operator credentials, tells remote clients,
// closes all connections, flushes the store, removes its run files and gives the
// directory free. Connections made by [Broker.System] are the caller's to drain before.
//
// It is idempotent and safe for concurrent use. When ctx ends first it returns an error
// wrapping ctx's; the rest of the stop goes on, and the directory stays locked until it
// is done.
func (b *Broker) Stop(ctx context.Context) error {
	b.stopOnce.Do(func() {
		go func() {
			defer close(b.stopped)
			b.stopErr = b.stop()
		}()
	})
	select {
	case <-b.stopped:
		return b.stopErr
	case <-ctx.Done():
		return fmt.Errorf("stop broker: %w", context.Cause(ctx))
	}
}

// stop undoes a start, also one that got only part of the way.
func (b *Broker) stop() error {
	var errs []error
	if b.socket != nil {
		errs = append(errs, b.socket.close())
	}
	if b.watcher != nil {
		b.watcher.close()
	}
	if b.space != nil {
		b.space.close()
	}
	if b.server != nil {
		b.stopServer()
	}
	if b.lock != nil {
		errs = append(errs, removeRun(b.cfg.Dir), b.lock.release())
	}
	return errors.Join(errs...)
}

// stopServer warns clients of other processes first; with none there is nobody to warn.
func (b *Broker) stopServer() {
	if b.server.NumClients() > 0 {
		b.server.LameDuckShutdown()
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
}
