package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"keryx/events"
)

// HostConfig says how a host runs turns. Handle is needed.
type HostConfig struct {
	// Handle runs one turn. It is called on a goroutine of its own, for one turn at a
	// time of each session, and after the bus has recorded the turn. Its context ends
	// with one of the causes [ErrInterrupted], [ErrLeaseLost] and [ErrHostStopping]; it
	// must return soon then. A panic ends the turn as failed.
	Handle func(ctx context.Context, t *Turn) Result
	// Capabilities beyond interrupt and idempotent_offer, which every host of this
	// package has: with merge a turn may have several items, with steer the handler
	// serves [Turn.Steers].
	Capabilities []events.Capability
	// LeaseTTL is how long this host may be silent before its sessions are taken from
	// it. Default 15 s; at least 2 s.
	LeaseTTL time.Duration
	// Parallel is how many turns may run at once. Default 1,000. An offer beyond it is
	// declined and comes again later.
	Parallel int
	// IdleDetach gives a session back after so long without a turn; it is attached
	// again when an item comes. 0: never.
	IdleDetach time.Duration
	// StopGrace is how long turns may take to end when the host stops. Default 15 s.
	StopGrace time.Duration
	// Logger defaults to the connection's.
	Logger *slog.Logger
}

// Times and bounds of a host.
const (
	relistEvery   = 30 * time.Second // sessions whose news were missed are found by then
	acceptFor     = 10 * time.Minute // an accept is sent again for so long
	reportFor     = 10 * time.Minute // a turn's end likewise
	detachFor     = 5 * time.Second
	offerWithin   = time.Second // a session is attached for what waits in it, which comes by then
	lookers       = 16          // sessions looked at or attached at once
	orderMessages = 8192
	orderBytes    = 64 << 20
	newsMessages  = 8192
	newsBytes     = 8 << 20
)

func (cfg *HostConfig) complete(c *Conn) error {
	if cfg.Handle == nil {
		return errors.New("no handler")
	}
	cfg.LeaseTTL = orDefault(cfg.LeaseTTL, 15*time.Second)
	cfg.StopGrace = orDefault(cfg.StopGrace, 15*time.Second)
	cfg.Parallel = orDefault(cfg.Parallel, 1000)
	if cfg.Logger == nil {
		cfg.Logger = c.logger
	}
	return nil
}

func orDefault[N int | time.Duration](n, def N) N {
	if n > 0 {
		return n
	}
	return def
}

// ServeHost runs a host until ctx ends. It attaches to the sessions that want this
// principal once an item waits in them, and keeps them until it loses or gives them back.
// When ctx has ended it interrupts the turns, reports their ends, gives its sessions back
// and returns nil; an error if handlers were left running or the connection has ended.
// A connection serves one host at a time.
func (c *Conn) ServeHost(ctx context.Context, cfg HostConfig) error {
	if err := cfg.complete(c); err != nil {
		return fmt.Errorf("serve host: %w", err)
	}
	if err := newHost(ctx, c, cfg).run(ctx); err != nil {
		return fmt.Errorf("serve host: %w", err)
	}
	return nil
}

type host struct {
	conn   *Conn
	cfg    HostConfig
	keeper *Keeper
	// life is the context of what the host does for its turns: it outlives ServeHost's
	// own context until they have ended, bounded.
	life context.Context
	end  context.CancelCauseFunc

	slots  *semaphore.Weighted // turns
	looks  *semaphore.Weighted
	relist chan struct{} // size 1

	work sync.WaitGroup // all goroutines but the keeper
	mu   sync.Mutex
	// stopping is set before work is waited for; no work begins after it.
	stopping bool
	sessions map[events.SessionID]*hosted
	// others are sessions that another host drives or that do not want this one, as
	// far as is known; what is heard of them asks for nothing.
	others map[events.SessionID]struct{}
}

func newHost(ctx context.Context, c *Conn, cfg HostConfig) *host {
	h := &host{
		conn: c, cfg: cfg, sessions: make(map[events.SessionID]*hosted), others: make(map[events.SessionID]struct{}),
		slots: semaphore.NewWeighted(int64(cfg.Parallel)), looks: semaphore.NewWeighted(lookers),
		relist: make(chan struct{}, 1),
	}
	h.life, h.end = context.WithCancelCause(context.WithoutCancel(ctx))
	h.keeper = NewKeeper(KeeperConfig{Caller: c, Instance: c.Instance(), OnLost: h.leaseLost, OnRegained: func(*Held) {}, Logger: cfg.Logger})
	return h
}

func (h *host) run(ctx context.Context) error {
	defer h.end(ErrHostStopping)
	p := h.conn.Principal()
	orders, news := newInbox(orderMessages, orderBytes), newInbox(newsMessages, newsBytes)
	news.wanted = isNews
	stopOrders, err := h.conn.listen(orders, events.HostAll(p.Profile, p.Name, h.conn.Instance()))
	if err != nil {
		return err
	}
	defer stopOrders()
	stopNews, err := h.conn.listen(news, events.LiveAll(p.Profile))
	if err != nil {
		return err
	}
	defer stopNews()
	var keeping sync.WaitGroup
	keep, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	keeping.Go(func() { h.keeper.Run(keep) })
	listing, stopListing := context.WithCancel(ctx)
	h.spawn(func() { h.lister(listing) })
	err = h.loop(ctx, orders, news)
	stopListing()
	err = errors.Join(err, h.stop())
	stopKeeping()
	keeping.Wait()
	return err
}

// spawn runs fn on a goroutine that the host waits for when it stops; it reports false
// when the host is stopping.
func (h *host) spawn(fn func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spawnLocked(fn)
}

func (h *host) spawnLocked(fn func()) bool {
	if h.stopping {
		return false
	}
	h.work.Go(fn)
	return true
}

// loop takes orders and news until ctx ends. News are hints: the list of sessions, read
// at the start, after each reconnect or loss and now and then, is what counts.
func (h *host) loop(ctx context.Context, orders, news *inbox) error {
	list := time.NewTicker(relistEvery)
	defer list.Stop()
	idle := h.idleTicker()
	defer idle.Stop()
	for {
		lost := h.conn.again.next()
		select {
		case <-orders.ready:
			if err := h.takeAll(orders, h.order); err != nil {
				return err
			}
		case <-news.ready:
			if err := h.takeAll(news, h.hear); err != nil {
				return err
			}
		case <-lost:
			if h.conn.nc.IsClosed() {
				return h.conn.sendError(nats.ErrConnectionClosed)
			}
			h.listSoon()
		case <-list.C:
			h.listSoon()
		case <-idle.C:
			h.detachIdle()
		case <-ctx.Done():
			return nil
		}
	}
}

func (h *host) takeAll(q *inbox, take func(*nats.Msg)) error {
	got, missed, err := q.take()
	for _, m := range got {
		take(m)
	}
	if missed {
		h.listSoon()
	}
	return err
}

func (h *host) listSoon() {
	select {
	case h.relist <- struct{}{}:
	default: // asked for already
	}
}
