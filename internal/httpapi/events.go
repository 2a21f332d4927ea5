package httpapi

import (
	"encoding/json"
	"errors"
	"strconv"

	"keryx/client"
	"keryx/events"
)

const (
	// pageDefault and pageMost are how many events a page has.
	pageDefault, pageMost = 100, 1000
	// historyPage is how many events a reader that is behind takes at once.
	historyPage = 128
)

func eventRoutes() []route {
	integer := schema{"type": "integer", "minimum": 0, "maximum": uint64(1<<64 - 1)}
	query := []param{
		{"from", "The first sequence wanted in a page; 0 for the beginning.", integer},
		{"limit", "How many events a page has; default 100.", schema{"type": "integer", "minimum": 1, "maximum": pageMost}},
		{"after", "The sequence behind which a stream begins, or 'tip' for what is new alone. The header Last-Event-ID goes before it. Default: the beginning.", schema{"type": "string", "pattern": `^([0-9]+|tip)$`}},
		{"type", "Keep only types that match one of these globs, in full or short, e.g. turn.*", schema{"type": "array", "items": schema{"type": "string"}}},
	}
	record := route{
		method: "GET", events: true, long: true, roles: events.Roles(), query: query, answer: eventPageSchema(), serve: (*call).events,
	}
	session, profile := record, record
	session.path, session.id = "/v1/sessions/{to}/events", "sessionEvents"
	session.words = "Read a session's record: a page, or, with Accept: text/event-stream, all of it and on as it goes"
	profile.path, profile.id = "/v1/profile/events", "profileEvents"
	profile.words = "Read the profile's own record, of targets, tokens and refusals, likewise"
	return []route{session, profile, statusRoute(), cloudEventsRoute()}
}

func eventPageSchema() schema {
	sequence := schema{"type": "integer"}
	return schema{
		"type": "object", "required": []string{"events", "next"},
		"properties": map[string]any{
			"events": schema{"type": "array", "items": schema{"type": "object"}, "description": "CloudEvents in the JSON format, in order; sequence is their place."},
			"next":   schema{"type": "integer", "description": "Where to go on; 0 when the page reached the tip."},
			"tip":    sequence,
			"gaps":   schema{"type": "array", "items": schema{"type": "object"}, "description": "What is not in the page although it was asked for."},
		},
	}
}

// eventPage is a page of a record.
type eventPage struct {
	Events []json.RawMessage `json:"events"`
	Next   events.Sequence   `json:"next"`
	Tip    events.Sequence   `json:"tip"`
	Gaps   []gapNotice       `json:"gaps,omitempty"`
}

// events answers with a page or a stream of a record.
func (c *call) events() error {
	q, err := c.eventQuery()
	if err != nil {
		return err
	}
	scope := events.ScopeProfile
	if to := c.r.PathValue("to"); to != "" {
		if scope, err = c.scope(to); err != nil {
			return err
		}
	}
	if wantsStream(c.r) {
		return c.streamEvents(scope, q)
	}
	return c.pageEvents(scope, q)
}

// eventQuery is what a request for events asks for.
type eventQuery struct {
	From  events.Sequence `json:"from"`
	Limit int             `json:"limit"`
	After string          `json:"after"`
	Types []string        `json:"type"`
}

func (c *call) eventQuery() (eventQuery, error) {
	q := eventQuery{Limit: pageDefault}
	if _, err := c.body(); err != nil {
		return q, err
	}
	data := make(fields)
	if err := c.query(data); err != nil {
		return q, err
	}
	if err := json.Unmarshal(data.raw(), &q); err != nil {
		return q, invalid("?", "the query cannot be read: %v", err)
	}
	if q.Limit < 1 || q.Limit > pageMost {
		return q, invalid("?limit", "a page has 1 to %d events", pageMost)
	}
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		q.After = last
	}
	return q, nil
}

// scope resolves an id or a name to the session's record.
func (c *call) scope(to string) (events.Scope, error) {
	v, err := c.conn.Show(c.ctx(), to)
	if err != nil {
		return "", err
	}
	return v.Session.Scope(), nil
}

func (c *call) pageEvents(scope events.Scope, q eventQuery) error {
	page, err := c.conn.Page(c.ctx(), scope, q.From, q.Limit)
	if err != nil {
		return err
	}
	out := eventPage{Events: []json.RawMessage{}, Next: page.Next, Tip: page.Tip.Sequence}
	if n := len(page.Records); n > 0 && q.From <= 1 && page.Records[0].Ordinal > 1 {
		out.Gaps = append(out.Gaps, gapNotice{FromOrdinal: 1, ToOrdinal: page.Records[0].Ordinal - 1, Reason: reasonCut})
	}
	for _, rec := range page.Records {
		if _, hole := page.Holes[rec.Sequence]; hole {
			out.Gaps = append(out.Gaps, gapNotice{From: rec.Sequence, To: rec.Sequence, Reason: reasonUndecodable})
			continue
		}
		if !client.MatchType(q.Types, rec.Type) {
			continue
		}
		body, err := events.MarshalStructured(*rec.Event)
		if err != nil {
			out.Gaps = append(out.Gaps, gapNotice{From: rec.Sequence, To: rec.Sequence, Reason: reasonUndecodable})
			continue
		}
		out.Events = append(out.Events, body)
	}
	return c.answerWith(out)
}

// reader is one reader of a scope's stream.
type reader struct {
	*stream
	feed  *feed
	types []string
	at    events.Sequence // what was sent last
	ord   events.Ordinal  // of that; 0 if it is not known
	live  bool            // it has been at the end of the record
}

func (c *call) streamEvents(scope events.Scope, q eventQuery) error {
	rd := &reader{types: q.Types}
	switch after, err := strconv.ParseUint(q.After, 10, 64); {
	case q.After == "tip":
		rd.live = true
	case q.After == "":
	case err != nil:
		return invalid("Last-Event-ID", "%q is not the id of an event", q.After)
	default:
		rd.at = events.Sequence(after)
	}
	if q.After == "tip" {
		tips, err := c.conn.Tips(c.ctx(), scope)
		if err != nil {
			return err
		}
		for _, t := range tips {
			rd.at, rd.ord = t.Sequence, t.Ordinal
		}
	}
	feed, release, err := c.s.feeds.acquire(scope)
	if err != nil {
		return err
	}
	defer release()
	if rd.stream, err = c.stream(); err != nil {
		return err
	}
	rd.feed = feed
	err = rd.open()
	if err == nil {
		err = rd.run()
	}
	rd.close(err)
	return nil // the headers are sent; the stream itself has told why it ended
}

// run streams until the caller, the token or the server ends.
func (rd *reader) run() error {
	for {
		if rd.ctx.Err() != nil {
			return rd.wait(nil)
		}
		news := rd.feed.news.next()
		got, floor, begun, err := rd.feed.after(rd.at)
		switch {
		case err != nil:
			return err
		case !begun:
			err = rd.wait(news)
		case rd.at < floor && rd.live:
			err = rd.skip(floor)
		case rd.at < floor:
			err = rd.history(floor)
		case len(got) > 0:
			rd.live = true
			err = rd.send(got)
		default:
			rd.live = true
			err = rd.wait(news)
		}
		if err != nil {
			return err
		}
	}
}

// skip tells a reader that was too slow what it goes without.
func (rd *reader) skip(floor events.Sequence) error {
	gap := gapNotice{From: rd.at + 1, To: floor, Reason: reasonBehind}
	rd.at, rd.ord = floor, 0
	return rd.write(gapFrame(floor, gap))
}

// history sends a page of what the feed does not keep.
func (rd *reader) history(floor events.Sequence) error {
	page, err := rd.c.conn.Page(rd.ctx, rd.feed.scope, rd.at+1, historyPage)
	if errors.Is(err, events.ErrOf(events.CodeTimeout)) {
		return rd.write([]byte(": the bus does not answer\n\n")) // it may be starting anew
	}
	if err != nil {
		return err
	}
	var out []entry
	for _, rec := range page.Records {
		known := rd.ord > 0 || rd.at == 0
		if known && rec.Ordinal > rd.ord+1 {
			out = append(out, entry{frame: gapFrame(rec.Sequence-1, gapNotice{FromOrdinal: rd.ord + 1, ToOrdinal: rec.Ordinal - 1, Reason: reasonCut})})
		}
		if _, hole := page.Holes[rec.Sequence]; hole {
			out = append(out, entry{frame: gapFrame(rec.Sequence, gapNotice{From: rec.Sequence, To: rec.Sequence, Reason: reasonUndecodable})})
		} else {
			out = append(out, entryOf(rec))
		}
		rd.at, rd.ord = rec.Sequence, rec.Ordinal
	}
	if page.Next == 0 { // all there was before the feed began has been read
		rd.at = max(rd.at, floor)
	}
	return rd.sendAll(out)
}

func (rd *reader) send(got []entry) error {
	rd.at, rd.ord = got[len(got)-1].seq, 0
	return rd.sendAll(got)
}

// sendAll writes what matches the types, in one go.
func (rd *reader) sendAll(got []entry) error {
	frames := make([][]byte, 0, len(got))
	for _, e := range got {
		if e.typ == "" || client.MatchType(rd.types, e.typ) {
			frames = append(frames, e.frame)
		}
	}
	if len(frames) == 0 {
		return nil
	}
	return rd.write(frames...)
}
