package httpapi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

const (
	// lookAgain is how often all sessions are looked at, for news that were missed.
	lookAgain = 30 * time.Second
	// lookMost bounds the sessions that wait to be looked at; beyond, all are.
	lookMost = 4096
	lookTime = 10 * time.Second
)

// lookout tells the hosts that live here which sessions want one.
type lookout struct {
	ss   *seats
	once sync.Once
	work sync.WaitGroup
	wake chan struct{} // size 1

	mu   sync.Mutex
	ids  map[events.SessionID]struct{}
	list bool // look at all of them
}

func newLookout(ss *seats) *lookout {
	return &lookout{ss: ss, wake: make(chan struct{}, 1), ids: make(map[events.SessionID]struct{})}
}

// begin starts looking, with the first host.
func (l *lookout) begin() {
	l.once.Do(func() { l.work.Go(l.run) })
	l.lookAtAll()
}

func (l *lookout) wait() { l.work.Wait() }

func (l *lookout) lookAtAll() {
	l.mu.Lock()
	l.list = true
	l.mu.Unlock()
	l.signal()
}

func (l *lookout) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // it will look
	}
}

// hear notes a session of which something was said that may make it want a host.
func (l *lookout) hear(m *nats.Msg) {
	switch events.Type(m.Header.Get("ce-type")) {
	case events.TypeSessionRegistered, events.TypeSessionDetached, events.TypeSessionReset,
		events.TypeContinuationQueued, events.TypeContinuationRequeued, events.TypeContinuationReleased:
	default:
		return
	}
	_, scope, err := events.ParseLogSubject(m.Subject)
	if err != nil || !events.IsULID(string(scope)) {
		return
	}
	l.mu.Lock()
	if len(l.ids) < lookMost {
		l.ids[events.SessionID(scope)] = struct{}{}
	} else {
		l.list = true
	}
	l.mu.Unlock()
	l.signal()
}

func (l *lookout) run() {
	conn, ctx := l.ss.conn, l.ss.life
	sub, err := conn.NATS().Subscribe(events.LiveAll(conn.Principal().Profile), l.hear)
	if err != nil {
		l.ss.cfg.Logger.Error("listen for sessions that want a host", "error", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-l.wake:
			l.look(ctx)
		case <-again.C:
			l.lookAtAll()
		case <-ctx.Done():
			return
		}
	}
}

// look asks the bus about the sessions that were heard of.
func (l *lookout) look(ctx context.Context) {
	l.mu.Lock()
	ids, list := l.ids, l.list
	l.ids, l.list = make(map[events.SessionID]struct{}), false
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if list {
		l.lookAtList(ctx)
		return
	}
	for id := range ids {
		v, err := l.ss.conn.Show(ctx, string(id))
		if err != nil {
			l.failed(ctx, err)
			return
		}
		l.tell(v.SessionSummary)
	}
}

func (l *lookout) lookAtList(ctx context.Context) {
	q := events.SessionList{Host: l.ss.conn.Principal().Name, Open: true}
	for s, err := range l.ss.conn.Sessions(ctx, q) {
		if err != nil {
			l.failed(ctx, err)
			return
		}
		l.tell(s)
	}
}

// failed leaves what was not looked at to the next look at all of them.
func (l *lookout) failed(ctx context.Context, err error) {
	if l.ss.life.Err() != nil {
		return
	}
	l.ss.cfg.Logger.Warn("look for sessions that want a host", "error", err)
	l.mu.Lock()
	l.list = true // at the next news or tick; the bus may be away now
	l.mu.Unlock()
}

func (l *lookout) tell(s events.SessionSummary) {
	name := l.ss.conn.Principal().Name
	if s.Host != "" || s.Pending == 0 || s.Status == events.StatusFinalized || !slices.Contains(s.WantedHosts, name) {
		return
	}
	data, err := wantedOrder(s)
	if err != nil {
		l.ss.cfg.Logger.Error("tell hosts of a session", "session", s.Session, "error", err)
		return
	}
	for _, st := range l.ss.all() {
		st.putWanted(data)
	}
}
