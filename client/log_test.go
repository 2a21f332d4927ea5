package client_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/events"
)

// record is a stored message of a [tape].
type record struct {
	scope   events.Scope
	seq     events.Sequence
	ordinal events.Ordinal
	header  nats.Header
	body    []byte
}

// tape is a log that loses what a test wants: it keeps events, republishes them live and
// answers log.page and log.tips as the authority does.
type tape struct {
	t  testing.TB
	mu sync.Mutex
	nc *nats.Conn

	seq      events.Sequence
	ordinals map[events.Scope]events.Ordinal
	kept     []record
	pages    int // asked for
	pageSize int
	other    func(command) // answers what is not of the log
}

func newTape(t testing.TB, s *server.Server) *tape {
	t.Helper()
	l := &tape{t: t, ordinals: make(map[events.Scope]events.Ordinal), pageSize: 1000}
	l.serve(s)
	return l
}

// serve moves the tape to a server.
func (l *tape) serve(s *server.Server) {
	nc := respond(l.t, s, l.take)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nc = nc
}

func (l *tape) take(c command) {
	switch events.Type(c.event.Type()) {
	case events.CmdLogPage:
		l.page(c, ask[events.LogPage](c))
	case events.CmdLogTips:
		l.tips(c, ask[events.LogTips](c))
	default:
		l.mu.Lock()
		other := l.other
		l.mu.Unlock()
		if other == nil {
			c.refuse(events.Errorf(events.CodeUnknownCommand, "%s", c.event.Type()))
			return
		}
		other(c)
	}
}

// add keeps an event and, unless hidden, publishes it.
func (l *tape) add(scope events.Scope, typ events.Type, data any, hidden bool) record {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	l.ordinals[scope]++
	e := cloudevent.New()
	e.SetID(events.NewID())
	e.SetSource("/test")
	e.SetType(string(typ))
	e.SetTime(time.Now())
	e.SetExtension(events.ExtOrdinal, l.ordinals[scope].String())
	var err error
	if e.DataEncoded, err = json.Marshal(data); err != nil {
		l.t.Errorf("encode: %v", err)
	}
	r := record{scope: scope, seq: l.seq, ordinal: l.ordinals[scope]}
	if r.header, r.body, err = events.Encode(e); err != nil {
		l.t.Errorf("encode: %v", err)
	}
	l.kept = append(l.kept, r)
	if !hidden {
		l.publish(r)
	}
	return r
}

func (l *tape) publish(r record) {
	m := nats.NewMsg(events.LiveSubject(profile, r.scope))
	for k, v := range r.header {
		m.Header[k] = v
	}
	m.Header.Set(nats.JSSequence, r.seq.String())
	m.Data = r.body
	if err := l.nc.PublishMsg(m); err != nil {
		l.t.Errorf("publish: %v", err)
	}
}

// fill adds n events.
func (l *tape) fill(scope events.Scope, n int, hidden bool) {
	for range n {
		l.add(scope, events.TypeContinuationQueued, struct{}{}, hidden)
	}
}

// cut forgets a scope's events up to an ordinal.
func (l *tape) cut(scope events.Scope, to events.Ordinal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []record
	for _, r := range l.kept {
		if r.scope != scope || r.ordinal > to {
			left = append(left, r)
		}
	}
	l.kept = left
}

// spoil makes an event undecodable.
func (l *tape) spoil(scope events.Scope, ordinal events.Ordinal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.kept {
		if r.scope == scope && r.ordinal == ordinal {
			h := nats.Header{"ce-" + events.ExtOrdinal: {strconv.Itoa(int(ordinal))}}
			l.kept[i].header = h
		}
	}
}

func (l *tape) tip(scope events.Scope) events.Tip {
	t := events.Tip{Scope: scope, Ordinal: l.ordinals[scope]}
	for _, r := range l.kept {
		if r.scope == scope {
			t.Sequence = r.seq
		}
	}
	return t
}

func (l *tape) page(c command, q events.LogPage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages++
	if l.ordinals[q.Scope] == 0 {
		c.refuse(events.Errorf(events.CodeUnknownSession, "%s", q.Scope))
		return
	}
	end := events.LogPageEnd{Tip: l.tip(q.Scope)}
	n := 0
	for _, r := range l.kept {
		if r.scope != q.Scope || r.seq < q.From {
			continue
		}
		if n == l.pageSize {
			end.Next = r.seq
			break
		}
		n++
		m := nats.NewMsg(c.msg.Reply)
		for k, v := range r.header {
			m.Header[k] = v
		}
		m.Header.Set(events.HeaderSequence, r.seq.String())
		m.Data = r.body
		if err := c.nc.PublishMsg(m); err != nil {
			l.t.Errorf("page: %v", err)
		}
	}
	c.end(end)
}

func (l *tape) tips(c command, q events.LogTips) {
	l.mu.Lock()
	defer l.mu.Unlock()
	scopes := q.Scopes
	if len(scopes) == 0 {
		for s := range l.ordinals {
			scopes = append(scopes, s)
		}
	}
	a := events.Tips{Tips: []events.Tip{}}
	for _, s := range scopes {
		if l.ordinals[s] > 0 {
			a.Tips = append(a.Tips, l.tip(s))
		}
	}
	c.answer(a)
}
