package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"keryx/client"
	"keryx/events"
)

// pollMost is how long a poll for orders may wait.
const pollMost = 60 * time.Second

func hostRoutes() []route {
	begin := route{
		method: "POST", path: "/v1/hosts", id: "beginHost", roles: []events.Role{events.RoleHost}, serve: (*call).beginHost,
		words: "Begin a host instance. Its sessions are those whose hosts name the principal in the answer",
		body: schema{"type": "object", "additionalProperties": false, "properties": map[string]any{
			"instance": schema{"$ref": string(events.CmdSessionAttach) + ".json#/properties/instance"},
		}},
		answer: schema{"type": "object", "required": []string{"instance", "host"}, "properties": map[string]any{
			"instance": schema{"type": "string", "description": "A ULID: the same for as long as the process lives."},
			"host":     schema{"type": "string", "description": "The principal as which the edge hosts sessions."},
		}},
	}
	orders := route{
		method: "GET", path: "/v1/hosts/{instance}/orders", id: "hostOrders", roles: []events.Role{events.RoleHost}, serve: (*call).orders,
		events: true, long: true,
		words: "Take the orders of a host instance: a poll that waits, or, with Accept: text/event-stream, as they come. While one of the two is open the host's sessions are kept",
		query: []param{
			{"after", "The id of the last order taken: it and those before are forgotten. The header Last-Event-ID goes before it.", schema{"type": "integer", "minimum": 0, "maximum": uint64(1<<64 - 1)}},
			{"wait_ms", "How long a poll waits for an order, in milliseconds; default 30000.", schema{"type": "integer", "minimum": 0, "maximum": pollMost.Milliseconds()}},
		},
		answer: schema{"type": "object", "required": []string{"orders", "missed"}, "properties": map[string]any{
			"missed": schema{"type": "boolean", "description": "Orders were dropped: attach again to learn of open offers."},
			"orders": schema{"type": "array", "items": schema{
				"type": "object", "required": []string{"id", "verb", "data"},
				"properties": map[string]any{
					"id":   schema{"type": "integer"},
					"verb": schema{"enum": []any{"offer", "steer", "interrupt", "detached", "wanted"}},
					"data": schema{"type": "object", "description": "As in the schema keryx.order.<verb>.v1; of wanted: the session and how many messages wait."},
				},
			}},
		}},
	}
	attach := post("/v1/sessions/{session}/attach", "attach", events.CmdSessionAttach, "Make a host instance the driver of a session")
	attach.serve = (*call).attach
	detach := post("/v1/sessions/{session}/detach", "detach", events.CmdSessionDetach, "Give a session back")
	detach.serve = (*call).detach
	return []route{
		begin, orders, attach, detach,
		post("/v1/sessions/{session}/reanchor", "reanchor", events.CmdSessionReanchor, "Move a session to a new stored id"),
		post("/v1/sessions/{session}/offers/{offer}/accept", "acceptOffer", events.CmdTurnAccept, "Take an offer as a turn, or a steer into the running one. Begin the turn only after the answer"),
		post("/v1/sessions/{session}/offers/{offer}/decline", "declineOffer", events.CmdTurnDecline, "Refuse an offer"),
		post("/v1/sessions/{session}/turns/{turn}/end", "endTurn", events.CmdTurnEnd, "Report the end of a turn, until it is answered"),
	}
}

func (c *call) beginHost() error {
	data, err := c.body()
	if err != nil {
		return err
	}
	instance := events.Instance(events.NewID())
	for name, value := range data {
		if name != "instance" {
			return invalid("", "no such field: %s", name)
		}
		if err := json.Unmarshal(value, &instance); err != nil {
			return invalid("/instance", "a string is needed")
		}
	}
	st, err := c.s.seats.begin(instance, c.token.Name)
	if err != nil {
		return err
	}
	return c.answerWith(map[string]any{"instance": st.instance, "host": c.conn.Principal().Name})
}

// attach makes sure that the instance hears its orders before the bus sends any.
func (c *call) attach() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	var instance events.Instance
	if c.token.Role != events.RoleHost || json.Unmarshal(data["instance"], &instance) != nil {
		return c.send(data) // the bus says what is wrong with it
	}
	st, err := c.s.seats.begin(instance, c.token.Name)
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := c.conn.Do(c.ctx(), c.route.command, data.raw(), &answer); err != nil {
		return err
	}
	var a events.Attached
	if err := json.Unmarshal(answer, &a); err != nil {
		return fmt.Errorf("decode the answer to an attach: %w", err)
	}
	st.keep(a.Session, kept{fence: a.Fence, ttl: time.Duration(a.LeaseTTLMS) * time.Millisecond})
	return c.answer(answer)
}

func (c *call) detach() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := c.conn.Do(c.ctx(), c.route.command, data.raw(), &answer); err != nil {
		return err
	}
	var d events.Detach
	if err := json.Unmarshal(data.raw(), &d); err != nil {
		return fmt.Errorf("decode a detach that was answered: %w", err)
	}
	for _, st := range c.s.seats.all() {
		st.drop(d.Session, d.Fence)
	}
	return c.answer(answer)
}

// orders answers with a poll or a stream of a host's orders.
func (c *call) orders() error {
	if _, err := c.body(); err != nil {
		return err
	}
	q := struct {
		After  uint64 `json:"after"`
		WaitMS int64  `json:"wait_ms"`
	}{WaitMS: 30_000}
	data := make(fields)
	if err := c.query(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data.raw(), &q); err != nil || q.WaitMS < 0 || q.WaitMS > pollMost.Milliseconds() {
		return invalid("?wait_ms", "0 to %d", pollMost.Milliseconds())
	}
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			return invalid("Last-Event-ID", "%q is not the id of an order", last)
		}
		q.After = n
	}
	seat, err := c.s.seats.find(events.Instance(c.r.PathValue("instance")), c.token.Name)
	if err != nil {
		return err
	}
	st, err := c.stream()
	if err != nil {
		return err
	}
	c.s.seats.enter(seat)
	defer c.s.seats.leave(seat)
	return c.keeping(seat, st, func() error {
		if wantsStream(c.r) {
			st.close(st.orders(seat, q.After))
			return nil
		}
		defer st.close(nil)
		return st.poll(seat, q.After, time.Duration(q.WaitMS)*time.Millisecond)
	})
}

// keeping runs serve while the seat's leases are renewed.
func (c *call) keeping(seat *seat, st *stream, serve func() error) error {
	ctx, stop := context.WithCancel(client.WithActingFor(context.WithoutCancel(st.ctx), c.token.Name))
	if err := seat.renewDue(ctx); err != nil { // also for polls that do not wait
		c.s.cfg.Logger.Warn("keep a host's sessions", "instance", seat.instance, "token", c.token.Name, "error", err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		if err := seat.keepLeases(ctx); err != nil {
			c.s.cfg.Logger.Warn("keep a host's sessions", "instance", seat.instance, "token", c.token.Name, "error", err)
		}
	})
	defer work.Wait()
	defer stop()
	return serve()
}

func (st *stream) orders(seat *seat, after uint64) error {
	if err := st.open(); err != nil {
		return err
	}
	for had := after; ; {
		if st.ctx.Err() != nil {
			return context.Cause(st.ctx)
		}
		news := seat.news.next()
		got, missed := seat.take(had, after)
		var frames [][]byte
		if missed {
			frames = append(frames, jsonFrame(eventGap, "", gapNotice{Reason: reasonBehind}))
		}
		for _, o := range got {
			after = o.ID
			frames = append(frames, frame(string(o.Verb), strconv.FormatUint(o.ID, 10), o.Data))
		}
		if len(frames) > 0 {
			if err := st.write(frames...); err != nil {
				return err
			}
			continue
		}
		if err := st.wait(news); err != nil {
			return err
		}
	}
}

// orderPage is what a poll is answered.
type orderPage struct {
	Orders []order `json:"orders"`
	Missed bool    `json:"missed"`
}

func (st *stream) poll(seat *seat, after uint64, wait time.Duration) error {
	patience := time.NewTimer(wait)
	defer patience.Stop()
	for {
		news := seat.news.next()
		got, missed := seat.take(after, after)
		if len(got) > 0 || missed {
			return st.c.answerWith(orderPage{Orders: append([]order{}, got...), Missed: missed})
		}
		select {
		case <-news:
		case <-patience.C:
			return st.c.answerWith(orderPage{Orders: []order{}})
		case <-st.ctx.Done():
			err := context.Cause(st.ctx)
			var e *events.Error
			if !errors.As(err, &e) {
				return nil // the caller has gone
			}
			return e
		}
	}
}
