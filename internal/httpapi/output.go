package httpapi

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"keryx/client"
	"keryx/events"
)

// chunkView is a piece of output as it is answered and streamed.
type chunkView struct {
	Number  uint64    `json:"number,omitempty"`
	Stream  string    `json:"stream"`
	Offset  int64     `json:"offset"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time,omitzero"`
	Missing int64     `json:"missing_bytes,omitempty"`
}

func viewOf(c client.Chunk) chunkView {
	return chunkView{Number: c.Number, Stream: c.Stream, Offset: c.Offset, Data: c.Data, Time: c.Time, Missing: c.Missing}
}

// outputPage is a page of output.
type outputPage struct {
	Chunks []chunkView `json:"chunks"`
	events.OutputPage
}

func outputSchema() schema {
	end := "keryx.cmd.exec.output.v1.answer.json#/properties/"
	return schema{
		"type": "object", "required": []string{"chunks", "stored"},
		"properties": map[string]any{
			"chunks": schema{"type": "array", "items": schema{
				"type": "object", "required": []string{"stream", "offset", "data"},
				"properties": map[string]any{
					"number": schema{"type": "integer"}, "stream": schema{"type": "string"}, "offset": schema{"type": "integer"},
					"data":          schema{"type": "string", "contentEncoding": "base64"},
					"time":          schema{"type": "string", "format": "date-time"},
					"missing_bytes": schema{"type": "integer"},
				},
			}},
			"next": schema{"$ref": end + "next"}, "stored": schema{"$ref": end + "stored"}, "missing": schema{"$ref": end + "missing"},
		},
	}
}

// output answers with a page of output or a stream of it.
func (c *call) output() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	var q events.Output
	if err := json.Unmarshal(data.raw(), &q); err != nil {
		return invalid("?", "the query cannot be read: %v", err)
	}
	if wantsStream(c.r) {
		return c.streamOutput(q)
	}
	chunks, end, err := c.conn.OutputPage(c.ctx(), q)
	if err != nil {
		return err
	}
	out := outputPage{Chunks: []chunkView{}, OutputPage: end}
	for _, chunk := range chunks {
		out.Chunks = append(out.Chunks, viewOf(chunk))
	}
	return c.answerWith(out)
}

// streamOutput streams whole output in order, and then how the exec ended. It begins
// behind the chunk that Last-Event-ID names.
func (c *call) streamOutput(q events.Output) error {
	var have uint64
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			return invalid("Last-Event-ID", "%q is not the id of an event", last)
		}
		have = n
	}
	// A refusal is told before the stream begins.
	if _, _, err := c.conn.OutputPage(c.ctx(), events.Output{Session: q.Session, Exec: q.Exec, TipOnly: true}); err != nil {
		return err
	}
	st, err := c.stream()
	if err != nil {
		return err
	}
	st.close(st.output(q, have))
	return nil
}

// output writes chunks as they come; heartbeats are sent between them by a reader of its
// own, so that both come from one goroutine.
func (st *stream) output(q events.Output, have uint64) error {
	if err := st.open(); err != nil {
		return err
	}
	frames, ended := make(chan []byte), make(chan error, 1)
	go func() {
		exited, err := st.c.conn.Output(st.ctx, "", q.Session, q.Exec, func(chunk client.Chunk) {
			if chunk.Number != 0 && chunk.Number <= have {
				return
			}
			select {
			case frames <- jsonFrame("output", numberOf(chunk), viewOf(chunk)):
			case <-st.ctx.Done():
			}
		})
		if err == nil {
			select {
			case frames <- jsonFrame("exit", "", exited):
			case <-st.ctx.Done():
			}
		}
		close(frames)
		ended <- err
	}()
	err := st.relay(frames)
	if err != nil { // the reader of output is not waited for by its own writer
		st.done()
		st.done = func() {}
		for range frames { // until it has seen that
		}
	}
	return errors.Join(err, <-ended)
}

// relay writes frames until there are no more.
func (st *stream) relay(frames <-chan []byte) error {
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				return nil
			}
			if err := st.write(f); err != nil {
				return err
			}
		case <-st.beat.C:
			if err := st.write([]byte(": alive\n\n")); err != nil {
				return err
			}
		}
	}
}

func numberOf(c client.Chunk) string {
	if c.Number == 0 {
		return ""
	}
	return strconv.FormatUint(c.Number, 10)
}
