package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Chunk is a piece of an exec's output.
type Chunk struct {
	// Number counts the chunks of all streams, from 1, in the order in which the
	// executor read them.
	Number uint64
	Stream string // stdout or stderr
	Offset int64  // in its stream
	Data   []byte
	// Skipped is how many chunks before this one were not kept.
	Skipped uint64
}

// outputBuffer is how many live chunks may wait; more are read from the stream.
const outputBuffer = 1024

// outputAhead is how many chunks are kept that came before their turn.
const outputAhead = 256

// Output calls fn with the output of an exec, in order and each chunk once, and returns
// how it ended once all that was kept has been handed out. The end is an ExecExited, or
// an *[events.Error]: refused with the executor's code, unknown_exec for one that was
// lost.
func (c *Conn) Output(ctx context.Context, session events.SessionID, exec events.ExecID, fn func(Chunk)) (events.ExecExited, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &outputReader{conn: c, session: session, exec: exec, fn: fn, next: 1, ahead: make(map[uint64]Chunk)}
	live := make(chan *nats.Msg, outputBuffer)
	sub, err := c.nc.ChanSubscribe(events.OutOfAny(c.Principal().Profile, session, exec), live)
	if err != nil {
		return events.ExecExited{}, fmt.Errorf("follow output: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	ended := make(chan execEnd, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- c.awaitExec(ctx, session, exec)
	}()
	defer func() { cancel(); <-done }()
	for {
		select {
		case m := <-live:
			if err := r.live(ctx, m); err != nil {
				return events.ExecExited{}, err
			}
		case end := <-ended:
			if end.err != nil {
				return events.ExecExited{}, errors.Join(end.err, r.fetch(ctx))
			}
			return end.exited, r.finish(ctx)
		}
	}
}

type outputReader struct {
	conn    *Conn
	session events.SessionID
	exec    events.ExecID
	fn      func(Chunk)
	next    uint64
	ahead   map[uint64]Chunk
	from    events.Sequence // where to read on in the stream
}

func (r *outputReader) live(ctx context.Context, m *nats.Msg) error {
	chunk, err := chunkOf(m)
	if err != nil {
		return err
	}
	r.take(chunk)
	if len(r.ahead) > 0 { // something before it was missed
		return r.fetch(ctx)
	}
	return nil
}

// take hands out a chunk, and those that waited for it, or keeps it for its turn.
func (r *outputReader) take(c Chunk) {
	switch {
	case c.Number < r.next:
		return
	case c.Number > r.next:
		if len(r.ahead) < outputAhead {
			r.ahead[c.Number] = c
		}
		return
	}
	for ok := true; ok; c, ok = r.ahead[r.next] {
		delete(r.ahead, c.Number)
		r.next = c.Number + 1
		r.fn(c)
	}
}

// fetch reads what the stream has beyond what was read before.
func (r *outputReader) fetch(ctx context.Context) error {
	for {
		next, last, err := r.page(ctx)
		if err != nil {
			return err
		}
		if next == 0 {
			if last > 0 {
				r.from = last + 1
			}
			return nil
		}
		r.from = next
	}
}

func (r *outputReader) page(ctx context.Context) (next, last events.Sequence, err error) {
	var bad error
	var got []Chunk
	body, err := r.conn.paged(ctx, events.CmdExecOutput, events.Output{Session: r.session, Exec: r.exec, From: r.from},
		func() { got, last = nil, 0 },
		func(seq events.Sequence, m *nats.Msg) {
			chunk, err := chunkOf(m)
			if err != nil {
				bad = err
			}
			got, last = append(got, chunk), seq
		})
	if err = errors.Join(err, bad); err != nil {
		return 0, 0, err
	}
	for _, chunk := range got {
		r.take(chunk)
	}
	var end events.OutputPage
	if err := json.Unmarshal(body, &end); err != nil {
		return 0, 0, fmt.Errorf("decode the end of a page of output: %w", err)
	}
	return end.Next, last, nil
}

// finish hands out what is left after the end: the executor has reported it only after
// the bus had stored what could be stored. Chunks sent again after a lost connection
// stand later in the stream, so it is read from the beginning when some are missing.
func (r *outputReader) finish(ctx context.Context) error {
	if err := r.fetch(ctx); err != nil {
		return err
	}
	for len(r.ahead) > 0 {
		before := r.next
		r.from = 0
		if err := r.fetch(ctx); err != nil {
			return err
		}
		if r.next == before {
			r.skip()
		}
	}
	return nil
}

// skip goes on behind chunks that were not kept.
func (r *outputReader) skip() {
	lowest := uint64(0)
	for n := range r.ahead {
		if lowest == 0 || n < lowest {
			lowest = n
		}
	}
	c := r.ahead[lowest]
	delete(r.ahead, lowest)
	c.Skipped = lowest - r.next
	r.next = lowest
	r.take(c)
}

func chunkOf(m *nats.Msg) (Chunk, error) {
	n, nerr := strconv.ParseUint(m.Header.Get(events.HeaderChunk), 10, 64)
	offset, oerr := strconv.ParseInt(m.Header.Get(events.HeaderOffset), 10, 64)
	if nerr != nil || oerr != nil || n == 0 {
		return Chunk{}, fmt.Errorf("an output chunk without number or offset on %s", m.Subject)
	}
	return Chunk{Number: n, Stream: m.Header.Get(events.HeaderStream), Offset: offset, Data: m.Data}, nil
}

type execEnd struct {
	exited events.ExecExited
	err    error
}

// awaitExec waits for the one terminal event of an exec.
func (c *Conn) awaitExec(ctx context.Context, session events.SessionID, exec events.ExecID) execEnd {
	cfg := FollowConfig{Scopes: []events.Scope{session.Scope()}, Types: []string{"exec.*"}}
	for rec, err := range c.Follow(ctx, cfg) {
		if err != nil && !isPassing(err) {
			return execEnd{err: err}
		}
		if end, ok := endOfExec(rec, exec); ok {
			return end
		}
	}
	return execEnd{err: context.Cause(ctx)}
}

func endOfExec(rec events.Record, exec events.ExecID) (execEnd, bool) {
	switch rec.Type {
	case events.TypeExecExited:
		d, err := events.DataOf[events.ExecExited](rec)
		return execEnd{exited: d, err: err}, err != nil || d.Exec == exec
	case events.TypeExecRefused:
		d, err := events.DataOf[events.ExecRefused](rec)
		if err == nil && d.Exec == exec {
			return execEnd{err: &events.Error{Code: d.Code, Message: d.Message}}, true
		}
	case events.TypeExecLost:
		d, err := events.DataOf[events.ExecLost](rec)
		if err == nil && d.Exec == exec {
			return execEnd{err: events.Errorf(events.CodeUnknownExec, "the exec was lost: %s", d.Reason)}, true
		}
	}
	return execEnd{}, false
}
