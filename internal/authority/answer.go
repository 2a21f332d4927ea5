package authority

import (
	"github.com/nats-io/nats.go"

	"keryx/events"
)

// answer sends an answer struct.
func (t *term) answer(reply string, v any) {
	body, err := events.MarshalData(v)
	if err != nil {
		t.logger.Error("encode an answer", "error", err)
		t.refuse(reply, events.Errorf(events.CodeInternal, "the answer could not be encoded"))
		return
	}
	t.send(reply, events.StatusOK, "", body)
}

// answerEnd sends the last message of a page.
func (t *term) answerEnd(reply string, v any) {
	body, err := events.MarshalData(v)
	if err != nil {
		t.logger.Error("encode a page end", "error", err)
		t.refuse(reply, events.Errorf(events.CodeInternal, "the page's end could not be encoded"))
		return
	}
	t.send(reply, events.StatusOK, events.PageEnd, body)
}

// refuse sends an error. It ends a page as well.
func (t *term) refuse(reply string, e *events.Error) {
	body, err := events.MarshalData(e)
	if err != nil {
		t.logger.Error("encode a refusal", "error", err)
		return
	}
	t.send(reply, events.StatusError, events.PageEnd, body)
}

func (t *term) send(reply, status, page string, body []byte) {
	m := nats.NewMsg(reply)
	m.Header.Set(events.HeaderStatus, status)
	if page != "" {
		m.Header.Set(events.HeaderPage, page)
	}
	m.Data = body
	if err := t.cfg.Conn.PublishMsg(m); err != nil {
		t.logger.Warn("send an answer", "error", err)
	}
}

// tell publishes an order to a host or executor, in the trace of what caused it.
func (t *term) tell(subject string, order any, in trace) {
	body, err := events.MarshalData(order)
	if err != nil {
		t.logger.Error("encode an order", "subject", subject, "error", err)
		return
	}
	m := nats.NewMsg(subject)
	m.Data = body
	if in.parent != "" {
		m.Header.Set(events.ExtTraceParent, in.parent)
	}
	if in.state != "" {
		m.Header.Set(events.ExtTraceState, in.state)
	}
	if err := t.cfg.Conn.PublishMsg(m); err != nil {
		t.logger.Warn("send an order", "subject", subject, "error", err)
	}
}
