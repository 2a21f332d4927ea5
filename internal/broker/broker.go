package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// Broker is a running server with its store. [Broker.Stop] ends it. Its methods are
// safe for concurrent use.
type Broker struct {
	cfg       Config
	lock      *storeLock
	registry  *Registry
	auth      *authenticator
	systemKey nkeys.KeyPair
	server    *server.Server
	watcher   *watcher
	socket    *operatorSocket
	space     *space

	stopOnce sync.Once
	stopped  chan struct{}
	stopErr  error // written before stopped is closed

	reloadMu sync.Mutex // held over reading principals.yaml and taking it into use
}

// Start opens the directory and serves until [Broker.Stop]. It returns [*HeldError] if
// another process has the directory and [*StreamError] if its store cannot be used. ctx
// bounds the start only.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Broker{cfg: cfg, stopped: make(chan struct{})}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.Stop(context.WithoutCancel(ctx)))
	}
	return b, nil
}

func (b *Broker) start(ctx context.Context) error {
	began := time.Now()
	if err := makeDirs(b.cfg.Dir); err != nil {
		return err
	}
	var err error
	if b.lock, err = lockStore(ctx, b.cfg.Dir); err != nil {
		return err
	}
	if b.cfg.Inspect != nil {
		if err := b.cfg.Inspect(ctx); err != nil {
			return err
		}
	}
	// Principals are known before the first connection: a client that is refused twice
	// gives up.
	set, err := loadPrincipalsAtStart(b.cfg.Dir)
	if err != nil {
		return err
	}
	b.registry = newRegistry(set)
	if b.systemKey, err = b.registry.embed(holder{system: true, local: true}); err != nil {
		return err
	}
	if err := b.serve(ctx); err != nil {
		return err
	}
	b.cfg.Logger.Info("broker serves", "url", b.URL(), "dir", b.cfg.Dir, "took", time.Since(began))
	return nil
}

func (b *Broker) serve(ctx context.Context) error {
	b.auth = newAuthenticator(b.registry, b.cfg.Logger)
	var err error
	if b.server, err = startServer(ctx, b.cfg, b.auth); err != nil {
		return err
	}
	b.auth.serve(b.server)
	if err := b.prepareStore(ctx); err != nil {
		return err
	}
	b.space = watchSpace(b) //nolint:contextcheck // it outlives the context of the start
	if b.cfg.Private {
		return nil
	}
	if err := errors.Join(b.lock.announce(b.URL()), writeRun(b.cfg.Dir, b.URL())); err != nil {
		return err
	}
	b.watcher = watchPrincipals(ctx, b)
	b.socket, err = serveOperators(b)
	return err
}

func (b *Broker) prepareStore(ctx context.Context) error {
	nc, err := b.System("broker")
	if err != nil {
		return err
	}
	defer nc.Close()
	return ensureStreams(ctx, nc, b.cfg.MaxStore, b.cfg.Logger)
}

// URL returns where clients of this machine connect.
func (b *Broker) URL() string { return serverURL(b.server) }

// Dir returns the bus directory.
func (b *Broker) Dir() string { return b.cfg.Dir }

// Registry returns who the principals are.
func (b *Broker) Registry() *Registry { return b.registry }

// Reload reads principals.yaml now, and cuts the connections of principals that are no
// longer in it. A file that cannot be used changes nothing. The broker also does so by
// itself when the file changes.
func (b *Broker) Reload() error {
	// Reading and taking into use are one step: of two reloads the later one's file counts,
	// else a principal just added could be forgotten again.
	b.reloadMu.Lock()
	defer b.reloadMu.Unlock()
	set, err := loadPrincipals(b.cfg.Dir)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	b.auth.revoke(func() []string { return b.registry.replace(set) })
	for _, p := range b.registry.shadowed() {
		b.cfg.Logger.Error("principal of principals.yaml is not let in: this process has one of its name",
			"profile", p.Profile, "name", p.Name)
	}
	return nil
}
