package client

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Keys types into the terminal of one exec and hears what became of it. Make it with
// [Conn.OpenKeys]; Close it. It is safe for concurrent use, but frames of several
// goroutines are in no order.
type Keys struct {
	conn    *Conn
	subject string
	sub     *nats.Subscription
	nonce   string
}

// OpenKeys begins to type into an exec. answered, if not nil, is called from one goroutine
// for each [Keys.Send] whose frame has a number, with what the terminal took of it.
func (c *Conn) OpenKeys(executor events.PrincipalName, session events.SessionID, exec events.ExecID, answered func(number uint64, a events.TTYAnswer)) (*Keys, error) {
	p := c.Principal()
	if err := executor.Validate(); err != nil {
		return nil, events.Errorf(events.CodeInvalid, "type: %v", err)
	}
	if !events.IsULID(string(session)) || !events.IsULID(string(exec)) {
		return nil, events.Errorf(events.CodeUnknownExec, "type: %q of %q is not an exec of a session", exec, session)
	}
	k := &Keys{conn: c, subject: events.TTYSubject(p.Profile, executor, p.Name, session, exec), nonce: events.NewID() + "."}
	if answered == nil {
		return k, nil
	}
	var err error
	k.sub, err = c.nc.Subscribe(events.TypedSubject(p.Profile, executor, p.Name, session, exec), func(m *nats.Msg) {
		if n, a, ok := k.answer(m); ok {
			answered(n, a)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("type: %w", err)
	}
	return k, nil
}

// answer reads an answer that is meant for these keys: others of the same principal may
// type into the same terminal.
func (k *Keys) answer(m *nats.Msg) (uint64, events.TTYAnswer, bool) {
	var a events.TTYAnswer
	if err := json.Unmarshal(m.Data, &a); err != nil {
		k.conn.logger.Warn("read an answer to input", "subject", m.Subject, "error", err)
		return 0, a, false
	}
	if len(a.Answer) <= len(k.nonce) || a.Answer[:len(k.nonce)] != k.nonce {
		return 0, a, false
	}
	n, err := strconv.ParseUint(a.Answer[len(k.nonce):], 10, 64)
	return n, a, err == nil
}

// Send sends a frame; what is in its Answer is replaced. With a number other than 0 it is
// answered, unless the connection is lost before.
func (k *Keys) Send(number uint64, f events.TTYFrame) error {
	f.Answer = ""
	if number != 0 {
		f.Answer = k.nonce + strconv.FormatUint(number, 10)
	}
	body, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("type: %w", err)
	}
	if err := k.conn.nc.Publish(k.subject, body); err != nil {
		return fmt.Errorf("type: %w", err)
	}
	return nil
}

// Close ends the hearing of answers. It is idempotent.
func (k *Keys) Close() error {
	if k.sub == nil || !k.sub.IsValid() {
		return nil
	}
	if err := k.sub.Unsubscribe(); err != nil {
		return fmt.Errorf("close keys: %w", err)
	}
	return nil
}
