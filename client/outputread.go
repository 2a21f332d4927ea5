package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

const (
	// How much live output may wait for its reader; more is read from the stream.
	outputMessages = 1024
	outputBytes    = 8 << 20
	// How often a reader that hears nothing asks whether it missed something.
	outputLookMin = 250 * time.Millisecond
	outputLookMax = 15 * time.Second
	// How long the last of the output may take to be stored once the end was recorded.
	storeTries = 5
	storePause = 50 * time.Millisecond
)

// outputReader reads the output of one exec. It is subscribed before it knows the exec,
// so that a caller who starts one misses nothing of it.
type outputReader struct {
	conn    *Conn
	session events.SessionID
	exec    events.ExecID
	live    *inbox
	stop    func()
	reel    *reel
	hole    uint64          // the missing chunk that was looked for last
	from    events.Sequence // where to read on in the stream: all before was read
	mark    anchor          // of the last chunk that was read from the stream
	first   anchor          // of the first chunk that was read there since it was reset
	heard   bool            // output came live since it was looked last
}

func (c *Conn) hearOutput(executor events.PrincipalName, session events.SessionID) (*outputReader, error) {
	if !events.IsULID(string(session)) {
		return nil, events.Errorf(events.CodeUnknownSession, "%q is not the id of a session", session)
	}
	if err := executor.Validate(); err != nil {
		return nil, events.Errorf(events.CodeInvalid, "output of an executor: %v", err)
	}
	r := &outputReader{conn: c, session: session, live: newInbox(outputMessages, outputBytes)}
	var err error
	r.stop, err = c.listen(r.live, events.OutOfSession(c.Principal().Profile, executor, session))
	if err != nil {
		return nil, fmt.Errorf("follow output: %w", err)
	}
	return r, nil
}

// read hands out the output to its end, which is recorded at or behind the sequence
// since. It looks for what was stored before the subscription after the time first.
func (r *outputReader) read(ctx context.Context, exec events.ExecID, since events.Sequence, first time.Duration, fn func(Chunk)) (events.ExecExited, error) {
	r.exec, r.reel = exec, newReel(fn)
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	ended := make(chan execEnd, 1)
	waiting.Go(func() { ended <- r.conn.awaitExec(ctx, r.session, exec, since) })
	look := time.NewTimer(first)
	defer look.Stop()
	for pause := outputLookMin; ; {
		lost := r.conn.again.next()
		select {
		case <-r.live.ready:
			missed, err := r.drain()
			if err != nil {
				return events.ExecExited{}, err
			}
			if soon, wait := r.plan(missed); soon {
				pause = outputLookMin
				look.Reset(wait)
			}
		case <-lost:
			r.heard = false
			look.Reset(0)
		case <-look.C:
			if err := r.look(ctx); err != nil {
				return events.ExecExited{}, err
			}
			look.Reset(pause)
			pause = min(2*pause, outputLookMax)
		case end := <-ended:
			return r.finish(ctx, end)
		}
	}
}

// drain takes what came live.
func (r *outputReader) drain() (missed bool, err error) {
	got, missed, err := r.live.take()
	for _, m := range got {
		if m.Subject[strings.LastIndexByte(m.Subject, '.')+1:] == string(r.exec) {
			r.heard = r.take(m) > 0 || r.heard
		}
	}
	return missed, err
}

// take returns the number of the chunk; 0 if it is none.
func (r *outputReader) take(m *nats.Msg) uint64 {
	c, err := chunkOf(m)
	if err != nil { // it will show as missing
		r.conn.logger.Warn("read output", "exec", r.exec, "error", err)
		return 0
	}
	r.reel.take(c)
	return c.Number
}

// newHole reports whether a chunk is missing that was not looked for yet.
func (r *outputReader) newHole() bool {
	if !r.reel.waits() || r.hole == r.reel.next {
		return false
	}
	r.hole = r.reel.next
	return true
}

// fetch reads all that is stored beyond what was read before.
func (r *outputReader) fetch(ctx context.Context) error {
	for {
		end, err := patiently(ctx, func() (events.OutputPage, error) { return r.page(ctx, false) })
		if err != nil || end.Next == 0 {
			return err
		}
		r.from = end.Next
	}
}

func (r *outputReader) page(ctx context.Context, tipOnly bool) (events.OutputPage, error) {
	var end events.OutputPage
	q := events.Output{Session: r.session, Exec: r.exec, From: r.from, TipOnly: tipOnly}
	page, body, err := r.conn.paged(ctx, events.CmdExecOutput, q)
	if err != nil {
		return end, err
	}
	for _, m := range page {
		if n := r.take(m.Msg); n > 0 {
			r.mark = anchor{n, m.seq}
			if r.first.at == 0 {
				r.first = r.mark
			}
		}
		r.from = m.seq + 1
	}
	if err := json.Unmarshal(body, &end); err != nil {
		return end, fmt.Errorf("decode the end of a page of output: %w", err)
	}
	return end, nil
}

// finish hands out what is left after the end. The executor reports it after the bus has
// taken the output, which is stored a moment later.
func (r *outputReader) finish(ctx context.Context, end execEnd) (events.ExecExited, error) {
	if !end.seen {
		return events.ExecExited{}, end.err
	}
	if _, err := r.drain(); err != nil {
		return events.ExecExited{}, err
	}
	sums := end.exited.Streams
	for try := 0; try < storeTries && (end.err != nil || !r.reel.whole(sums)); try++ {
		if try > 0 && !sleep(ctx, storePause) {
			return events.ExecExited{}, context.Cause(ctx)
		}
		if try > 0 {
			r.from = 0 // what was sent again stands anywhere
		}
		if err := r.fetch(ctx); err != nil {
			return events.ExecExited{}, err
		}
		if end.err != nil {
			break // nobody knows how much there was
		}
	}
	r.reel.finish(sums)
	return end.exited, end.err
}

// OutputPage reads stored output of an exec as it is kept, a page from a stream sequence
// on. Unlike [Conn.Output] it neither orders nor waits. The end tells where to go on.
func (c *Conn) OutputPage(ctx context.Context, q events.Output) ([]Chunk, events.OutputPage, error) {
	var end events.OutputPage
	page, body, err := c.paged(ctx, events.CmdExecOutput, q)
	if err != nil {
		return nil, end, err
	}
	out := make([]Chunk, 0, len(page))
	for _, m := range page {
		chunk, err := chunkOf(m.Msg)
		if err != nil {
			return nil, end, err
		}
		out = append(out, chunk)
	}
	if err := json.Unmarshal(body, &end); err != nil {
		return nil, end, fmt.Errorf("decode the end of a page of output: %w", err)
	}
	return out, end, nil
}
