package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"keryx/events"
	"keryx/internal/travel"
)

// atParam is the query's field of a moment.
func atParam() param {
	return param{
		"at", "The session as it was: a sequence, an ordinal as #12, or a time (RFC 3339).",
		schema{"type": "string", "minLength": 1, "maxLength": 64},
	}
}

// showSession answers with a session as it is, or as it was.
func (c *call) showSession() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	at, past := data["at"]
	if !past {
		return c.send(data)
	}
	var text string
	if err := json.Unmarshal(at, &text); err != nil {
		return invalid("?at", "a text is needed")
	}
	m, err := moment(text)
	if err != nil {
		return err
	}
	scope, err := c.scope(c.r.PathValue("to"))
	if err != nil {
		return err
	}
	p, err := travel.To(c.ctx(), c.conn, c.conn.Principal().Profile, scope, m)
	if err != nil {
		return err
	}
	return c.answerWith(p.State.View())
}

func moment(text string) (travel.Moment, error) {
	digits, ordinal := strings.CutPrefix(text, "#")
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case err == nil && n > 0 && ordinal:
		return travel.Moment{Ordinal: events.Ordinal(n)}, nil
	case err == nil && n > 0:
		return travel.Moment{Sequence: events.Sequence(n)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || ordinal {
		return travel.Moment{}, invalid("?at", "%q is neither a sequence, nor an ordinal as #12, nor a time as 2026-12-01T12:00:00Z", text)
	}
	return travel.Moment{Time: t}, nil
}
