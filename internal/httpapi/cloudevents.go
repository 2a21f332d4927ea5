package httpapi

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

const (
	mediaStructured = "application/cloudevents+json"
	mediaBatch      = "application/cloudevents-batch+json"
	// batchMost is how many events a batch has.
	batchMost = 100
	// reserved begins the types that only the bus itself says.
	reserved = "keryx."
)

func cloudEventsRoute() route {
	receipt := schema{"$ref": string(events.CmdContinuationSubmit) + ".answer.json"}
	return route{
		method: http.MethodPost, path: "/v1/events", id: "sendEvents", roles: []events.Role{events.RoleGateway, events.RoleOperator},
		words: "Put CloudEvents (HTTP binding: binary, structured or batch) into sessions, as messages. The session is the query's 'to', else the event's subject; " +
			"an event with the same source and id within a day is the same message",
		query: []param{{"to", "The session, by id or any name; default: the event's subject.", schema{"type": "string", "minLength": 1, "maxLength": 1024}}},
		body:  schema{}, serve: (*call).cloudEvents,
		answer: schema{"oneOf": []any{receipt, schema{"type": "array", "items": schema{
			"type": "object", "required": []string{"id"},
			"properties": map[string]any{"id": schema{"type": "string"}, "receipt": receipt, "error": schema{"$ref": "#/components/schemas/Problem"}},
		}}}},
	}
}

// taken is what became of one event of a batch.
type taken struct {
	ID      string          `json:"id"`
	Receipt *events.Receipt `json:"receipt,omitempty"`
	Error   *problem        `json:"error,omitempty"`
}

func (c *call) cloudEvents() error {
	q := make(fields)
	if err := c.query(q); err != nil {
		return err
	}
	var to struct {
		To string `json:"to"`
	}
	if err := json.Unmarshal(q.raw(), &to); err != nil {
		return invalid("?to", "%v", err)
	}
	body, err := c.read()
	if err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == mediaBatch:
		return c.batch(body, to.To)
	case err == nil && strings.HasPrefix(kind, "application/cloudevents") && kind != mediaStructured:
		return events.Errorf(events.CodeUndecodable, "events in %s are not read; %s and %s are", kind, mediaStructured, mediaBatch)
	}
	ev, err := decodeEvent(c.r.Header, kind, body)
	if err != nil {
		return err
	}
	receipt, err := c.deliver(ev, to.To)
	if err != nil {
		return err
	}
	return c.answerWith(receipt)
}

// decodeEvent reads the structured mode, or the binary one: headers with the prefix ce-,
// the content type as the payload's.
func decodeEvent(h http.Header, kind string, body []byte) (events.Event, error) {
	if kind == mediaStructured {
		return events.UnmarshalStructured(body)
	}
	headers := make(nats.Header)
	for name, values := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "ce-") {
			headers[lower] = values
		}
	}
	if len(headers) == 0 {
		return events.Event{}, events.Errorf(events.CodeUndecodable, "neither a header with the prefix ce- nor a content type of CloudEvents")
	}
	if t := h.Get("Content-Type"); t != "" {
		headers["ce-datacontenttype"] = []string{t}
	}
	return events.Decode(headers, body)
}

// batch takes each event by itself: what is wrong with one does not hold up the others.
func (c *call) batch(body []byte, to string) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return events.Errorf(events.CodeUndecodable, "the batch is not a JSON array: %v", err)
	}
	if len(raw) > batchMost {
		return events.Errorf(events.CodeTooLarge, "the batch has %d events, at most %d are taken", len(raw), batchMost)
	}
	out, status := make([]taken, 0, len(raw)), http.StatusOK
	for _, one := range raw {
		ev, err := events.UnmarshalStructured(one)
		t := taken{}
		if err == nil {
			t.ID = ev.ID()
			var receipt events.Receipt
			if receipt, err = c.deliver(ev, to); err == nil {
				t.Receipt = &receipt
			}
		}
		if err != nil {
			p := problemOf(refusal(err))
			t.Error, status = &p, http.StatusMultiStatus
		}
		out = append(out, t)
	}
	if status != http.StatusOK {
		c.w.Header().Set("Content-Type", mediaJSON)
		c.w.WriteHeader(status)
	}
	return c.answerWith(out)
}

// deliver submits an event as a message. Its source and id say which event it is, so that
// a sender's retry is the same message.
func (c *call) deliver(ev events.Event, to string) (events.Receipt, error) {
	if to == "" {
		to = ev.Subject()
	}
	switch {
	case strings.HasPrefix(ev.Type(), reserved):
		return events.Receipt{}, invalid("type", "types that begin with %s are the bus's own", reserved)
	case to == "":
		return events.Receipt{}, invalid("subject", "neither the event's subject nor the query's 'to' names a session")
	}
	doc, err := events.MarshalStructured(ev)
	if err != nil {
		return events.Receipt{}, err
	}
	receipt, err := c.conn.Submit(c.ctx(), events.Submit{
		To: to, Body: events.Body{Text: textOf(ev), Data: doc},
		IdempotencyKey: string(c.token.Name) + ":ce:" + events.NameHash(ev.Source()+"\n"+ev.ID()),
	})
	// Sent in another mode it may read otherwise, and is the same event all the same.
	if e := refusal(err); err != nil && e.Code == events.CodeIdempotencyConflict && e.Details["receipt"] != "" {
		return c.conn.Receipt(c.ctx(), events.ReceiptID(e.Details["receipt"]))
	}
	return receipt, err
}

// textOf is what an event says to a reader: its payload if that is text, else what it is.
func textOf(ev events.Event) string {
	kind, _, err := mime.ParseMediaType(ev.DataContentType())
	text := err == nil && (strings.HasPrefix(kind, "text/") || kind == mediaJSON || strings.HasSuffix(kind, "+json"))
	if text && len(ev.DataEncoded) > 0 && len(ev.DataEncoded) <= events.MaxBody && utf8.Valid(ev.DataEncoded) {
		return string(ev.DataEncoded)
	}
	return ev.Type() + " from " + ev.Source()
}
