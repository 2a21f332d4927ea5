package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// Bounds of a host that lives here.
const (
	// seatOrders is how many orders wait for a host. One session has few at once; a host
	// that lets more pile up is told that it has missed some.
	seatOrders = 1024
	// seatIdle is how long a host may be away before its seat is cleared: longer than any
	// lease that it would have kept.
	seatIdle = 5 * time.Minute
	// renewTime bounds one renewal.
	renewTime = 5 * time.Second
	// renewLook is how often a renewal may become due: a third of the shortest lease.
	renewLook = 500 * time.Millisecond
)

// order is what a host instance is told.
type order struct {
	ID   uint64          `json:"id"`
	Verb events.HostVerb `json:"verb"`
	Data json.RawMessage `json:"data"`
}

// seat is a host instance that lives on HTTP: its orders, and the sessions it keeps.
type seat struct {
	instance events.Instance
	owner    events.TokenName
	conn     *client.Conn
	sub      *nats.Subscription
	news     notice
	idle     *time.Timer

	mu       sync.Mutex
	orders   []order
	last     uint64 // id of the newest order
	sent     uint64 // id of the newest that was handed out
	missed   bool   // orders were dropped that were never handed out
	present  int    // open streams and polls
	sessions map[events.SessionID]kept
	renewed  time.Time
}

// kept is a session that a host drives.
type kept struct {
	fence events.Fence
	ttl   time.Duration
}

// put queues an order. It runs on the subscription's goroutine.
func (st *seat) put(verb events.HostVerb, data []byte) {
	st.mu.Lock()
	st.putLocked(verb, data)
	st.mu.Unlock()
	st.news.fire()
}

func (st *seat) putLocked(verb events.HostVerb, data []byte) {
	st.last++
	st.orders = append(st.orders, order{ID: st.last, Verb: verb, Data: data})
	if over := len(st.orders) - seatOrders; over > 0 {
		st.missed = st.missed || st.orders[over-1].ID > st.sent
		st.orders = append([]order(nil), st.orders[over:]...)
	}
}

// putWanted is put for a hint, which is kept once until the host has it.
func (st *seat) putWanted(data []byte) {
	st.mu.Lock()
	waits := slices.ContainsFunc(st.orders, func(o order) bool {
		return o.ID > st.sent && o.Verb == hostVerbWanted && bytes.Equal(o.Data, data)
	})
	if !waits {
		st.putLocked(hostVerbWanted, data)
	}
	st.mu.Unlock()
	st.news.fire()
}

// take forgets the orders up to had, which the host has, and returns those behind from.
func (st *seat) take(had, from uint64) (got []order, missed bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for len(st.orders) > 0 && st.orders[0].ID <= had {
		st.orders = st.orders[1:]
	}
	for _, o := range st.orders {
		if o.ID > from {
			got = append(got, o)
			st.sent = max(st.sent, o.ID)
		}
	}
	missed, st.missed = st.missed, false
	return got, missed
}

func (st *seat) hear(m *nats.Msg) {
	verb := events.HostVerb(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if verb == events.HostDetached {
		var d events.HostDetach
		if err := json.Unmarshal(m.Data, &d); err == nil {
			st.drop(d.Session, d.Fence)
		}
	}
	st.put(verb, m.Data)
}

// keep remembers a session that the host drives.
func (st *seat) keep(id events.SessionID, k kept) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.sessions[id] = k
}

// drop forgets a session under the fence that ended; under any if it is zero.
func (st *seat) drop(id events.SessionID, fence events.Fence) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if k, ok := st.sessions[id]; ok && (fence.IsZero() || k.fence == fence) {
		delete(st.sessions, id)
	}
}

// leases are what to renew, and how often.
func (st *seat) leases() (refs []events.LeaseRef, every time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for id, k := range st.sessions {
		key := events.LeaseKey{Profile: st.conn.Principal().Profile, Kind: events.LeaseSession, Name: string(id)}
		refs = append(refs, events.LeaseRef{Key: key, Fence: k.fence})
		if d := k.ttl / 3; every == 0 || d < every {
			every = d
		}
	}
	return refs, every
}

// renewDue extends the leases if it is time; those that are lost are forgotten.
func (st *seat) renewDue(ctx context.Context) error {
	refs, every := st.leases()
	st.mu.Lock()
	due := time.Since(st.renewed) >= every
	if due {
		st.renewed = time.Now()
	}
	st.mu.Unlock()
	if !due {
		return nil
	}
	for len(refs) > 0 {
		part := refs[:min(len(refs), 500)]
		refs = refs[len(part):]
		bounded, cancel := context.WithTimeout(ctx, renewTime)
		var got events.LeaseRenewals
		err := st.conn.Do(bounded, events.CmdLeaseRenew, events.RenewLease{Instance: st.instance, Leases: part}, &got)
		cancel()
		if err != nil {
			st.mu.Lock()
			st.renewed = time.Time{} // it is due again at once
			st.mu.Unlock()
			return err
		}
		for i, r := range got.Results {
			if i < len(part) && r.Error != nil && (r.Error.Code == events.CodeLeaseLost || r.Error.Code == events.CodeUnknownSession) {
				st.drop(events.SessionID(part[i].Key.Name), part[i].Fence)
			}
		}
	}
	return nil
}

// keepLeases renews until ctx ends, which is as long as the host is there.
func (st *seat) keepLeases(ctx context.Context) error {
	tick := time.NewTicker(renewLook)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		err := st.renewDue(ctx)
		if errors.Is(err, events.ErrOf(events.CodeUnauthenticated)) || errors.Is(err, events.ErrOf(events.CodeForbidden)) {
			return err
		}
	}
}

// seats are the host instances that live here.
type seats struct {
	conn *client.Conn // nil: no host lives here
	cfg  Config
	life context.Context
	look *lookout

	mu   sync.Mutex
	open map[events.Instance]*seat
}

func newSeats(life context.Context, cfg Config) *seats {
	ss := &seats{conn: cfg.Conns[events.RoleHost], cfg: cfg, life: life, open: make(map[events.Instance]*seat)}
	ss.look = newLookout(ss)
	return ss
}

// usable refuses where no host can live.
func (ss *seats) usable() error {
	if ss.conn == nil {
		return events.Errorf(events.CodeForbidden, "this edge has no principal of role host to act as")
	}
	if ss.life.Err() != nil {
		return errStopping
	}
	return nil
}

// begin returns the seat of an instance and makes it if there is none.
func (ss *seats) begin(instance events.Instance, owner events.TokenName) (*seat, error) {
	if err := ss.usable(); err != nil {
		return nil, err
	}
	if !events.IsULID(string(instance)) {
		return nil, invalid("/instance", "%q is not a ULID (26 digits and capital letters)", instance)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if st := ss.open[instance]; st != nil {
		return st, st.ownedBy(owner)
	}
	if len(ss.open) >= ss.cfg.Seats {
		return nil, events.Errorf(events.CodeRateLimited, "%d hosts live here, more are not served", ss.cfg.Seats)
	}
	// Ids grow over restarts of the edge too, so that an old one is behind every new one.
	st := &seat{instance: instance, owner: owner, conn: ss.conn, last: uint64(time.Now().UnixMicro()), sessions: make(map[events.SessionID]kept)}
	p := ss.conn.Principal()
	var err error
	if st.sub, err = ss.conn.NATS().Subscribe(events.HostAll(p.Profile, p.Name, instance), st.hear); err != nil {
		return nil, events.Errorf(events.CodeUnavailable, "listen for orders: %v", err)
	}
	st.idle = time.AfterFunc(seatIdle, func() { ss.clear(st) })
	ss.open[instance] = st
	ss.look.begin()
	return st, nil
}

// find returns the seat of an instance, which its token has begun.
func (ss *seats) find(instance events.Instance, owner events.TokenName) (*seat, error) {
	if err := ss.usable(); err != nil {
		return nil, err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st := ss.open[instance]
	if st == nil {
		return nil, events.Errorf(events.CodeUnknownLease, "no host instance %q lives here; begin with POST /v1/hosts, and attach again to what it drives", instance)
	}
	return st, st.ownedBy(owner)
}

func (st *seat) ownedBy(token events.TokenName) error {
	if st.owner != token {
		return events.Errorf(events.CodeForbidden, "the host instance %s was begun with another token", st.instance)
	}
	return nil
}

// enter says that the host is there; leave, that its stream or poll has ended.
func (ss *seats) enter(st *seat) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.present++
	st.idle.Stop()
}

func (ss *seats) leave(st *seat) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.present--
	if st.present == 0 {
		st.idle.Reset(seatIdle)
	}
}

// clear ends a seat whose host did not come back.
func (ss *seats) clear(st *seat) {
	st.mu.Lock()
	gone := st.present == 0
	st.mu.Unlock()
	if !gone {
		return
	}
	ss.mu.Lock()
	if ss.open[st.instance] == st {
		delete(ss.open, st.instance)
	}
	ss.mu.Unlock()
	st.end()
}

func (st *seat) end() {
	st.idle.Stop()
	_ = st.sub.Unsubscribe() // fails only once the connection is gone
}

func (ss *seats) all() []*seat {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	out := make([]*seat, 0, len(ss.open))
	for _, st := range ss.open {
		out = append(out, st)
	}
	return out
}

// wait ends the seats, after their context. The sessions stay attached for their leases'
// time, in which the hosts may come back.
func (ss *seats) wait() {
	for _, st := range ss.all() {
		st.end()
	}
	ss.look.wait()
}

// hostVerbWanted is told by the edge itself: a session wants a host, has something to do
// and nobody who does it.
const hostVerbWanted events.HostVerb = "wanted"

// wanted is the data of such an order.
type wanted struct {
	Session events.SessionID `json:"session"`
	Pending int              `json:"pending"`
}

func wantedOrder(s events.SessionSummary) ([]byte, error) {
	b, err := events.MarshalData(wanted{Session: s.Session, Pending: s.Pending})
	if err != nil {
		return nil, fmt.Errorf("encode an order: %w", err)
	}
	return b, nil
}
