package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"keryx/events"
)

const mediaSSE = "text/event-stream"

// Names of streamed events that are not events of the record; those have none.
const (
	eventGap = "gap" // events that this stream does not have
	eventEnd = "end" // why the stream ends, as a problem
)

// gapNotice says what a stream leaves out: sequences or, where nobody knows them,
// ordinals, both ends included.
type gapNotice struct {
	From        events.Sequence `json:"from,omitempty"`
	To          events.Sequence `json:"to,omitempty"`
	FromOrdinal events.Ordinal  `json:"from_ordinal,omitempty"`
	ToOrdinal   events.Ordinal  `json:"to_ordinal,omitempty"`
	Reason      string          `json:"reason"`
}

// Why a stream has a gap.
const (
	reasonBehind      = "the reader fell behind; what is missing can be fetched as pages"
	reasonCut         = "the events are no longer kept"
	reasonUndecodable = "the event cannot be decoded"
)

// frame is one event of a stream. Data may have lines; name may be empty, id absent.
func frame(name, id string, data []byte) []byte {
	b := make([]byte, 0, len(data)+64)
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		b = append(append(append(b, "data: "...), line...), '\n')
	}
	return append(b, '\n')
}

func jsonFrame(name, id string, v any) []byte {
	body, err := events.MarshalData(v)
	if err != nil { // structs of this package always have a JSON form
		panic(err)
	}
	return frame(name, id, body)
}

func gapFrame(seq events.Sequence, g gapNotice) []byte { return jsonFrame(eventGap, seq.String(), g) }

// entryOf is a record as it is streamed: the event in JSON, its sequence as the id.
func entryOf(rec events.Record) entry {
	body, err := events.MarshalStructured(*rec.Event)
	if err != nil {
		return entry{seq: rec.Sequence, frame: gapFrame(rec.Sequence, gapNotice{From: rec.Sequence, To: rec.Sequence, Reason: reasonUndecodable})}
	}
	return entry{seq: rec.Sequence, typ: rec.Type, frame: frame("", rec.Sequence.String(), body)}
}

// stream is an open stream of server-sent events.
type stream struct {
	c    *call
	rc   *http.ResponseController
	beat *time.Ticker
	// ctx ends with the request, the token or the server.
	ctx  context.Context
	done func()
}

// stream begins one: its caller has asked for it and is counted until it calls close.
func (c *call) stream() (*stream, error) {
	if !c.s.streams.TryAcquire(1) {
		return nil, events.Errorf(events.CodeRateLimited, "%d streams and polls are open, more are not served", c.s.cfg.Streams)
	}
	ctx, stop := context.WithCancelCause(c.ctx())
	undrain := context.AfterFunc(c.s.draining, func() { stop(errStopping) })
	ctx, cancel := c.s.bearers.life(ctx, c.token)
	return &stream{
		c: c, rc: http.NewResponseController(c.w), beat: time.NewTicker(c.s.cfg.Heartbeat), ctx: ctx,
		done: func() {
			cancel()
			undrain()
			stop(context.Canceled)
			c.s.streams.Release(1)
		},
	}, nil
}

// open sends the headers, so that the caller knows that it is heard.
func (st *stream) open() error {
	h := st.c.w.Header()
	h.Set("Content-Type", mediaSSE)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	st.c.w.WriteHeader(http.StatusOK)
	return st.write([]byte(": keryx\nretry: 1000\n\n"))
}

// write sends frames. A caller that does not take them in time is given up.
func (st *stream) write(frames ...[]byte) error {
	if err := st.rc.SetWriteDeadline(time.Now().Add(st.c.s.cfg.WriteTime)); err != nil {
		return fmt.Errorf("bound a write: %w", err)
	}
	for _, f := range frames {
		if _, err := st.c.w.Write(f); err != nil {
			return err
		}
	}
	return st.rc.Flush()
}

// wait returns nil when there may be news; it sends heartbeats meanwhile.
func (st *stream) wait(news <-chan struct{}) error {
	for {
		select {
		case <-news:
			return nil
		case <-st.beat.C:
			if err := st.write([]byte(": alive\n\n")); err != nil {
				return err
			}
		case <-st.ctx.Done():
			return context.Cause(st.ctx)
		}
	}
}

// close tells why the stream ends, where there is somebody to tell.
func (st *stream) close(why error) {
	st.beat.Stop()
	defer func() { st.done() }()
	var e *events.Error
	if errors.As(why, &e) && st.c.ctx().Err() == nil {
		_ = st.write(jsonFrame(eventEnd, "", problemOf(e))) // a caller that has gone needs no reason
	}
}

// wantsStream reports whether a request asks for a stream of events.
func wantsStream(r *http.Request) bool {
	for _, v := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			kind, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(kind), mediaSSE) {
				return true
			}
		}
	}
	return false
}
