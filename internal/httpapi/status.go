package httpapi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"keryx/events"
)

// Times of a session's status.
const (
	// statusPatience is how long the bus may take to answer before it counts as silent.
	statusPatience = 2 * time.Second
	// statusPause is the least time between two answers to one stream.
	statusPause = 100 * time.Millisecond
	// statusLook is how often a stream looks whether the bus is still there.
	statusLook = time.Second
)

// statusItem is one value for a badge or a tile.
type statusItem struct {
	// Name has a namespace; those of the bus begin with keryx.
	Name  string `json:"name"`
	Value any    `json:"value"`
	// AsOf is when the source last said so.
	AsOf time.Time `json:"as_of"`
	// Stale says that the source is silent now: the value is the last that is known.
	Stale bool `json:"stale"`
}

// statusView is a session's status. A session that nobody registered has no items.
type statusView struct {
	Session events.SessionID `json:"session,omitempty"`
	Items   []statusItem     `json:"items"`

	at events.Sequence // of the session's last event
}

func statusRoute() route {
	return route{
		method: "GET", path: "/v1/sessions/{to}/status", id: "sessionStatus", roles: events.Roles(), events: true, long: true,
		words: "Last known values for badges and tiles, with their age; with Accept: text/event-stream whenever they change",
		answer: schema{
			"type": "object", "required": []string{"items"},
			"properties": map[string]any{
				"session": schema{"type": "string"},
				"items": schema{"type": "array", "items": schema{
					"type": "object", "required": []string{"name", "value", "as_of", "stale"},
					"properties": map[string]any{
						"name": schema{"type": "string"}, "value": schema{},
						"as_of": schema{"type": "string", "format": "date-time"}, "stale": schema{"type": "boolean"},
					},
				}},
			},
		},
		serve: (*call).status,
	}
}

// boardMost bounds how many sessions' last values are remembered.
const boardMost = 4096

// board remembers what was last known, for when the bus is silent.
type board struct {
	mu    sync.Mutex
	known map[string]statusView // by the id or name asked for
}

func newBoard() *board { return &board{known: make(map[string]statusView)} }

func (b *board) keep(to string, v statusView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, had := b.known[to]; !had && len(b.known) >= boardMost {
		for other := range b.known { // any: it is asked for again by who needs it
			delete(b.known, other)
			break
		}
	}
	b.known[to] = v
}

// stale returns the last known values, marked so.
func (b *board) stale(to string) (statusView, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.known[to]
	v.Items = slices.Clone(v.Items)
	for i := range v.Items {
		v.Items[i].Stale = true
	}
	return v, ok
}

// statusNow asks the bus, or tells what was last known if it is silent. What was never
// known is an error, not a value.
func (c *call) statusNow(ctx context.Context, to string) (statusView, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	view, err := c.conn.Show(ctx, to)
	switch {
	case err == nil:
		v := statusOf(view, time.Now())
		c.s.board.keep(to, v)
		return v, nil
	case errors.Is(err, events.ErrOf(events.CodeUnknownSession)):
		return statusView{Items: []statusItem{}}, nil
	case errors.Is(err, events.ErrOf(events.CodeTimeout)), errors.Is(err, events.ErrOf(events.CodeUnavailable)):
		if v, ok := c.s.board.stale(to); ok {
			return v, nil
		}
	}
	return statusView{}, err
}

func statusOf(view events.SessionView, now time.Time) statusView {
	running := 0
	for _, e := range view.Execs {
		if e.Started {
			running++
		}
	}
	v := statusView{Session: view.Session, at: view.LastSeq}
	for _, i := range []statusItem{
		{Name: "keryx.state", Value: view.Status},
		{Name: "keryx.epoch", Value: view.Epoch},
		{Name: "keryx.host", Value: orNull(view.Host)},
		{Name: "keryx.turn", Value: orNull(view.Turn)},
		{Name: "keryx.pending", Value: view.Pending},
		{Name: "keryx.waiting_for", Value: orNull(view.WaitingFor)},
		{Name: "keryx.execs", Value: running},
		{Name: "keryx.last_at", Value: view.LastAt},
	} {
		i.AsOf = now.UTC()
		v.Items = append(v.Items, i)
	}
	return v
}

// orNull is null for what is not there: an empty text would be a value.
func orNull[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return s
}

// same reports whether two views say the same, whenever they did.
func (v statusView) same(w statusView) bool {
	return v.Session == w.Session && slices.EqualFunc(v.Items, w.Items, func(a, b statusItem) bool {
		return a.Name == b.Name && a.Value == b.Value && a.Stale == b.Stale
	})
}

// status answers with a session's status or a stream of it.
func (c *call) status() error {
	if _, err := c.data(); err != nil {
		return err
	}
	to := c.r.PathValue("to")
	now, err := c.statusNow(c.ctx(), to)
	if err != nil {
		return err
	}
	if !wantsStream(c.r) {
		return c.answerWith(now)
	}
	if now.Session == "" {
		return events.Errorf(events.CodeUnknownSession, "no session has the id or name %q, so that nothing can change", to)
	}
	feed, release, err := c.s.feeds.acquire(now.Session.Scope())
	if err != nil {
		return err
	}
	defer release()
	st, err := c.stream()
	if err != nil {
		return err
	}
	st.close(st.status(feed, to, now))
	return nil
}

// status sends the values at first and whenever they change, the bus falls silent or
// speaks again.
func (st *stream) status(feed *feed, to string, now statusView) error {
	if err := st.open(); err != nil {
		return err
	}
	look := time.NewTicker(statusLook)
	defer look.Stop()
	for first := true; ; first = false {
		news := feed.news.next()
		next, err := st.c.statusNow(st.ctx, to)
		if err != nil {
			return err
		}
		if first || !next.same(now) {
			if err := st.write(jsonFrame("status", next.at.String(), next)); err != nil {
				return err
			}
		}
		now = next
		if err := st.pause(statusPause); err != nil {
			return err
		}
		if err := st.changed(news, look.C, now); err != nil {
			return err
		}
	}
}

// changed returns when the session has news, or when the connection to the bus is no
// longer what the values say of it.
func (st *stream) changed(news <-chan struct{}, look <-chan time.Time, now statusView) error {
	stale := len(now.Items) > 0 && now.Items[0].Stale
	for {
		select {
		case <-news:
			return nil
		case <-look:
			if stale || !st.c.conn.NATS().IsConnected() {
				return nil
			}
		case <-st.beat.C:
			if err := st.write([]byte(": alive\n\n")); err != nil {
				return err
			}
		case <-st.ctx.Done():
			return context.Cause(st.ctx)
		}
	}
}

func (st *stream) pause(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-st.ctx.Done():
		return context.Cause(st.ctx)
	}
}
