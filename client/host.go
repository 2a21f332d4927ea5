package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"keryx/events"
)

// HostConfig says how a host runs turns. Handle is needed.
type HostConfig struct {
	// Handle runs one turn. It is called on a goroutine of its own, for one turn at a
	// time of each session. Its context ends with one of the causes [ErrInterrupted],
	// [ErrLeaseLost] and [ErrHostStopping]; it must return soon then. A panic ends the
	// turn as failed.
	Handle func(ctx context.Context, t *Turn) Result
	// Capabilities beyond interrupt and idempotent_offer, which every host of this
	// package has.
	Capabilities []events.Capability
	// LeaseTTL is how long this host may be silent. Default 15 s.
	LeaseTTL time.Duration
	// Parallel is how many turns may run at once. Default 1,000. An offer beyond it is
	// declined and comes again later.
	Parallel int
	// Logger defaults to the connection's.
	Logger *slog.Logger
}

// Times of a host.
const (
	relistEvery = 15 * time.Second // sessions whose news were missed are found by then
	reportFor   = 10 * time.Minute // a turn's end is reported for so long
	stopGrace   = 15 * time.Second // for turns to end when the host stops
	attachers   = 16               // sessions attached at once
)

// ServeHost runs a host until ctx ends; it returns nil then, after its turns have ended
// and its sessions were detached. It attaches to the sessions that want this principal
// once an item waits in them. A connection serves one host.
func (c *Conn) ServeHost(ctx context.Context, cfg HostConfig) error {
	if cfg.Handle == nil {
		return errors.New("serve host: no handler")
	}
	if cfg.LeaseTTL <= 0 {
		cfg.LeaseTTL = 15 * time.Second
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = 1000
	}
	if cfg.Logger == nil {
		cfg.Logger = c.logger
	}
	h := newHost(c, cfg)
	return h.run(ctx)
}

type host struct {
	conn   *Conn
	cfg    HostConfig
	keeper *Keeper
	slots  *semaphore.Weighted

	mu       sync.Mutex
	sessions map[events.SessionID]*hosted
	attach   *semaphore.Weighted
	work     sync.WaitGroup // attachers and turns
}

// hosted is a session that is attached, or about to be.
type hosted struct {
	id       events.SessionID
	attached bool
	fence    events.Fence
	target   events.TargetName
	held     *Held
	turns    map[events.OfferID]events.TurnID // what each offer became
	running  *runningTurn
	early    []events.Offer // told before the attach was answered
}

type runningTurn struct {
	id     events.TurnID
	cancel context.CancelCauseFunc
}

func newHost(c *Conn, cfg HostConfig) *host {
	h := &host{
		conn: c, cfg: cfg, sessions: make(map[events.SessionID]*hosted),
		slots: semaphore.NewWeighted(int64(cfg.Parallel)), attach: semaphore.NewWeighted(attachers),
	}
	h.keeper = NewKeeper(KeeperConfig{Caller: c, Instance: c.instance, OnLost: h.lost, Logger: cfg.Logger})
	return h
}

func (h *host) run(ctx context.Context) error {
	p := h.conn.Principal()
	orders, news := make(chan *nats.Msg, followBuffer), make(chan *nats.Msg, followBuffer)
	told, err := h.conn.nc.ChanSubscribe(events.HostAll(p.Profile, p.Name, h.conn.instance), orders)
	if err != nil {
		return fmt.Errorf("serve host: %w", err)
	}
	defer func() { _ = told.Unsubscribe() }() // fails only once the connection is gone
	heard, err := h.conn.nc.ChanSubscribe(events.LiveAll(p.Profile), news)
	if err != nil {
		return fmt.Errorf("serve host: %w", err)
	}
	defer func() { _ = heard.Unsubscribe() }()
	var services sync.WaitGroup
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	services.Go(func() { h.keeper.Run(keeping) })
	err = h.loop(ctx, orders, news)
	h.stop(ctx, orders)
	stopKeeping()
	services.Wait()
	return err
}

// loop takes orders and news until ctx ends. News are hints; the list of sessions, read
// at the start, after each reconnect and every 15 s, is what counts.
func (h *host) loop(ctx context.Context, orders, news <-chan *nats.Msg) error {
	tick := time.NewTicker(relistEvery)
	defer tick.Stop()
	for {
		woken := h.conn.waiters.next()
		h.work.Go(func() { h.list(ctx) })
		for again := false; !again; {
			select {
			case m := <-orders:
				h.order(ctx, m)
			case m := <-news:
				h.hear(ctx, m)
			case <-tick.C:
				again = true
			case <-woken:
				again = true
			case <-ctx.Done():
				return nil
			}
		}
		if h.conn.nc.IsClosed() {
			return fmt.Errorf("serve host: %w", nats.ErrConnectionClosed)
		}
	}
}

func (h *host) list(ctx context.Context) {
	q := events.SessionList{Host: h.conn.Principal().Name, Open: true}
	for s, err := range h.conn.Sessions(ctx, q) {
		if err != nil {
			if ctx.Err() == nil {
				h.cfg.Logger.Warn("list sessions", "error", err)
			}
			return
		}
		h.consider(ctx, s)
	}
}

// hear looks at a session in which something was queued or which has lost its host.
func (h *host) hear(ctx context.Context, m *nats.Msg) {
	t := events.Type(m.Header.Get("ce-type"))
	switch t {
	case events.TypeContinuationQueued, events.TypeContinuationRequeued, events.TypeSessionDetached, events.TypeSessionReset:
	default:
		return
	}
	_, scope, err := events.ParseLogSubject(m.Subject)
	if err != nil || scope == events.ScopeProfile || h.knows(events.SessionID(scope)) {
		return
	}
	h.work.Go(func() {
		v, err := h.conn.Show(ctx, string(scope))
		if err == nil {
			h.consider(ctx, v.SessionSummary)
		} else if ctx.Err() == nil {
			h.cfg.Logger.Warn("look at a session", "session", scope, "error", err)
		}
	})
}

func (h *host) knows(id events.SessionID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id] != nil
}

// consider attaches to a session that wants this host, has something to do and has
// nobody who does it.
func (h *host) consider(ctx context.Context, s events.SessionSummary) {
	wanted := slices.Contains(s.WantedHosts, h.conn.Principal().Name)
	if !wanted || s.Host != "" || s.Pending == 0 || s.Status == events.StatusFinalized {
		return
	}
	h.mu.Lock()
	if h.sessions[s.Session] != nil || ctx.Err() != nil {
		h.mu.Unlock()
		return
	}
	e := &hosted{id: s.Session, turns: make(map[events.OfferID]events.TurnID)}
	h.sessions[s.Session] = e
	h.mu.Unlock()
	h.work.Go(func() { h.attachTo(ctx, e) })
}

func (h *host) attachTo(ctx context.Context, e *hosted) {
	if h.attach.Acquire(ctx, 1) != nil {
		h.drop(e)
		return
	}
	defer h.attach.Release(1)
	asked := BootTime()
	capabilities := append([]events.Capability{events.CapInterrupt, events.CapIdempotentOffer}, h.cfg.Capabilities...)
	a, err := h.conn.Attach(ctx, events.Attach{
		Session: e.id, Capabilities: capabilities, LeaseTTLMS: h.cfg.LeaseTTL.Milliseconds(),
	})
	if err != nil {
		h.drop(e)
		if ctx.Err() == nil && !errors.Is(err, events.ErrOf(events.CodeAlreadyAttached)) {
			h.cfg.Logger.Warn("attach", "session", e.id, "error", err)
		}
		return
	}
	key := events.LeaseKey{Profile: h.conn.Principal().Profile, Kind: events.LeaseSession, Name: string(e.id)}
	held := h.keeper.Adopt(key, a.Fence, time.Duration(a.LeaseTTLMS)*time.Millisecond, asked)
	h.mu.Lock()
	e.attached, e.fence, e.target, e.held = true, a.Fence, a.Target, held
	early := e.early
	e.early = nil
	h.mu.Unlock()
	for _, o := range early {
		h.offer(ctx, o)
	}
}

// drop forgets a session and returns what ran in it.
func (h *host) drop(e *hosted) *runningTurn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[e.id] == e {
		delete(h.sessions, e.id)
	}
	if e.held != nil {
		e.held.Forget()
	}
	return e.running
}

// lost is called by the keeper: this host no longer drives the session.
func (h *host) lost(l *Held) {
	h.forget(events.SessionID(l.key.Name), l.fence)
}

func (h *host) forget(id events.SessionID, fence events.Fence) {
	h.mu.Lock()
	e := h.sessions[id]
	h.mu.Unlock()
	if e == nil || e.fence != fence {
		return
	}
	if turn := h.drop(e); turn != nil {
		turn.cancel(ErrLeaseLost)
	}
}

// order does what the bus told this instance.
func (h *host) order(ctx context.Context, m *nats.Msg) {
	verb := events.HostVerb(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	var err error
	switch verb {
	case events.HostOffer:
		var o events.Offer
		if err = json.Unmarshal(m.Data, &o); err == nil {
			h.offer(ctx, o)
		}
	case events.HostInterrupt:
		var i events.InterruptTurn
		if err = json.Unmarshal(m.Data, &i); err == nil {
			h.interrupt(i)
		}
	case events.HostDetached:
		var d events.HostDetach
		if err = json.Unmarshal(m.Data, &d); err == nil {
			h.forget(d.Session, d.Fence)
		}
	}
	if err != nil {
		h.cfg.Logger.Error("an order cannot be read", "verb", verb, "error", err)
	}
}

func (h *host) interrupt(i events.InterruptTurn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.sessions[i.Session]; e != nil && e.running != nil && e.running.id == i.Turn {
		e.running.cancel(ErrInterrupted)
	}
}

// stop ends the turns, bounded, and gives the sessions back.
func (h *host) stop(ctx context.Context, orders <-chan *nats.Msg) {
	h.mu.Lock()
	for _, e := range h.sessions {
		if e.running != nil {
			e.running.cancel(ErrHostStopping)
		}
	}
	h.mu.Unlock()
	ended := make(chan struct{})
	go func() { h.work.Wait(); close(ended) }()
	h.drainOrders(orders, ended)
	h.detachAll(context.WithoutCancel(ctx))
}

// drainOrders keeps the order channel empty while turns end: what comes now is offered
// again to whoever attaches next.
func (h *host) drainOrders(orders <-chan *nats.Msg, ended <-chan struct{}) {
	bound := time.NewTimer(stopGrace)
	defer bound.Stop()
	for {
		select {
		case <-orders:
		case <-ended:
			return
		case <-bound.C:
			h.cfg.Logger.Warn("turns did not end in time", "bound", stopGrace)
			return
		}
	}
}

func (h *host) detachAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	h.mu.Lock()
	all := make([]*hosted, 0, len(h.sessions))
	for _, e := range h.sessions {
		if e.attached {
			all = append(all, e)
		}
	}
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, e := range all {
		if h.attach.Acquire(ctx, 1) != nil {
			break
		}
		wg.Go(func() {
			defer h.attach.Release(1)
			h.drop(e)
			if err := h.conn.Detach(ctx, e.id, e.fence); err != nil && !errors.Is(err, events.ErrOf(events.CodeStaleFence)) {
				h.cfg.Logger.Warn("detach", "session", e.id, "error", err)
			}
		})
	}
	wg.Wait()
}
