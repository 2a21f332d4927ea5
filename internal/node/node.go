package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/authority"
	"keryx/internal/broker"
	"keryx/internal/leases"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

// Config says where a bus lives and how it serves. Dir is needed.
type Config struct {
	// Dir holds the store, principals.yaml and run/.
	Dir string
	// Listen is host:port; empty for a free port on loopback.
	Listen string
	// Sync is when appends are synced; the zero value is before each answer.
	Sync broker.SyncMode
	// AcceptLoss serves a store that has lost messages, and records it.
	AcceptLoss bool
	// AuthorityTTL is the ttl of the lease bus.authority; 0 for its default.
	AuthorityTTL time.Duration
	// Retain is how long the events of an epoch are kept after the next one has begun; 0
	// is for ever.
	Retain time.Duration
	// Free is how much the store may still grow, as in broker.Config; nil asks the
	// filesystem of Dir.
	Free func() (uint64, error)
	// Written is told of every sequence that is on disk, before anything follows from it;
	// nil for nobody.
	Written func(events.Sequence)
	// Logger defaults to slog.Default.
	Logger *slog.Logger

	offline bool
}

// Node is a running bus. Stop ends it.
type Node struct {
	cfg    Config
	broker *broker.Broker
	system *nats.Conn
	marks  *sessionlog.HighWater
	auth   *authority.Authority
	lost   *events.StoreRegressed // set when a loss was accepted at this start

	scanned storefile.Report // of the log, before the server opened it
	loss    *loss            // accepted at this start; nil for none

	cancel   context.CancelCauseFunc
	services sync.WaitGroup
	failed   chan error // the authority's end and the store's, a value each
	stopOnce sync.Once
	stopErr  error
}

// Start opens the directory and serves until [Node.Stop]. It returns
// *broker.HeldError if another process has the directory, and
// *sessionlog.RegressedError or *storefile.DamagedError if the store has lost messages
// and AcceptLoss is not set, and *storefile.FormatError if a newer bus wrote it. It returns as soon as principals can connect; [Node.Ready] tells when commands
// are answered.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	n := &Node{cfg: cfg, failed: make(chan error, 2)}
	var err error
	n.broker, err = broker.Start(ctx, broker.Config{
		Dir: cfg.Dir, Listen: cfg.Listen, Sync: cfg.Sync, Private: cfg.offline, Free: cfg.Free, Logger: cfg.Logger, Inspect: n.inspect,
	})
	if err != nil {
		return nil, err
	}
	if err := n.assemble(ctx); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *Node) assemble(ctx context.Context) error {
	var err error
	if n.system, err = n.broker.System("authority"); err != nil {
		return fmt.Errorf("connect the authority: %w", err)
	}
	log, err := sessionlog.Open(ctx, n.system)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	generation, err := n.checkHighWater(ctx, log)
	if err != nil {
		return err
	}
	store, err := leases.OpenStore(ctx, n.system)
	if err != nil {
		return fmt.Errorf("open the leases: %w", err)
	}
	n.auth, err = authority.New(authority.Config{
		Conn: n.system, Log: log, Leases: store, Registry: n.broker.Registry(),
		Generation: generation, Regressed: n.lost, Note: n.written, Logger: n.cfg.Logger, Offline: n.cfg.offline, SoleOwner: true, Room: n.broker.Room,
		AuthorityTTL: n.cfg.AuthorityTTL, Retain: n.cfg.Retain,
	})
	if err != nil {
		return err
	}
	n.run() //nolint:contextcheck // the node outlives the context of its start
	return nil
}

// written notes how far the log has come.
func (n *Node) written(s events.Sequence) {
	n.marks.Note(s)
	if n.cfg.Written != nil {
		n.cfg.Written(s)
	}
}

// run starts what lives as long as the node, and hands its end to Stop.
func (n *Node) run() {
	var ctx context.Context
	ctx, n.cancel = context.WithCancelCause(context.Background())
	n.services.Go(func() {
		err := n.auth.Run(ctx)
		if err != nil {
			n.cfg.Logger.Error("authority ended", "error", err)
		}
		n.failed <- err
	})
	n.services.Go(func() {
		select {
		case err := <-n.broker.Failed():
			n.cfg.Logger.Error("store failed", "error", err)
			n.failed <- err
		case <-ctx.Done():
		}
	})
	n.services.Go(func() { n.marks.Run(ctx) })
}

// Broker returns the broker, which the node stops.
func (n *Node) Broker() *broker.Broker { return n.broker }

// Ready reports whether commands are answered.
func (n *Node) Ready() bool { return n.auth != nil && n.auth.Active() }

// Failed delivers the error with which the authority ended by itself or after which the
// store cannot be written any more; the node has to be stopped then.
func (n *Node) Failed() <-chan error { return n.failed }

// Connect connects a principal that lives in this process only. The caller closes the
// connection before the node is stopped.
func (n *Node) Connect(ctx context.Context, p events.Principal) (*client.Conn, error) {
	c, err := n.connect(ctx, p, n.broker.Embed)
	if err == nil {
		n.auth.Embed(p, c.Instance())
	}
	return c, err
}

// ConnectForOthers is [Node.Connect] for a principal that acts for instances elsewhere:
// what those hold is theirs for as long as their leases last, also over a restart.
func (n *Node) ConnectForOthers(ctx context.Context, p events.Principal) (*client.Conn, error) {
	return n.connect(ctx, p, n.broker.EmbedForOthers)
}

func (n *Node) connect(ctx context.Context, p events.Principal, embed func(events.Principal) (client.Credentials, error)) (*client.Conn, error) {
	creds, err := embed(p)
	if err != nil {
		return nil, fmt.Errorf("embed principal %s: %w", p.Name, err)
	}
	return client.Connect(ctx, client.Config{
		Credentials: creds, InProcess: n.broker.InProcess(), Logger: n.cfg.Logger,
	})
}

// Stop finishes commands already taken, finalizes sessions of the bus's own lifetime,
// and ends all that Start began. It is idempotent; ctx bounds it.
func (n *Node) Stop(ctx context.Context) error {
	n.stopOnce.Do(func() { n.stopErr = n.stop(ctx) })
	return n.stopErr
}

func (n *Node) stop(ctx context.Context) error {
	if n.cancel != nil {
		n.cancel(authority.ErrStopped)
	}
	n.services.Wait()
	if n.system != nil {
		n.system.Close()
	}
	return n.broker.Stop(ctx)
}
