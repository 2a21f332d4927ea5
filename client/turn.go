package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Causes by which the context of a running turn ends.
var (
	// ErrInterrupted means that somebody asked for the turn to be aborted.
	ErrInterrupted = errors.New("the turn was interrupted")
	// ErrLeaseLost means that this host no longer drives the session. What the turn
	// reports is kept as late.
	ErrLeaseLost = errors.New("the session's lease was lost")
	// ErrHostStopping means that [Conn.ServeHost] was asked to end.
	ErrHostStopping = errors.New("the host is stopping")
)

// Result is how a turn ended.
type Result struct {
	// Outcome is completed, failed or aborted. If it is empty the turn was aborted when
	// its context had ended, else failed when Error is set, else completed.
	Outcome events.Outcome
	// Reply is the whole reply. The middle of one that does not fit into an event is
	// cut, and the event says so.
	Reply string
	// ReplyTruncated says that the handler has cut the reply.
	ReplyTruncated bool
	// Error says what went wrong when the outcome is not completed.
	Error             string
	BackgroundRunning int
}

// Bounds of a result as it is written in JSON, so that the event fits with the rest.
const (
	maxReplyJSON = 768 << 10
	maxErrorJSON = 32 << 10
)

// completed fills in what the handler left open and cuts what would not be taken: a
// result that is refused would leave its turn open for ever.
func (r Result) completed(ctx context.Context) Result {
	switch r.Outcome {
	case events.OutcomeCompleted, events.OutcomeFailed, events.OutcomeAborted:
	case "":
		r = r.decided(ctx)
	default:
		r.Error = fmt.Sprintf("the host's handler gave the outcome %q", r.Outcome)
		r.Outcome = events.OutcomeFailed
	}
	var cut bool
	r.Reply, cut = cutMiddle(r.Reply, maxReplyJSON)
	r.ReplyTruncated = r.ReplyTruncated || cut
	r.Error, _ = cutMiddle(r.Error, maxErrorJSON)
	r.BackgroundRunning = max(r.BackgroundRunning, 0)
	return r
}

func (r Result) decided(ctx context.Context) Result {
	switch {
	case ctx.Err() != nil:
		r.Outcome = events.OutcomeAborted
		if r.Error == "" {
			r.Error = context.Cause(ctx).Error()
		}
	case r.Error != "":
		r.Outcome = events.OutcomeFailed
	default:
		r.Outcome = events.OutcomeCompleted
	}
	return r
}

// cutMiddle cuts the middle out of a text until its JSON has at most limit bytes.
func cutMiddle(s string, limit int) (string, bool) {
	if len(s)*6 <= limit { // no byte needs more than six
		return s, false
	}
	cut := false
	for keep := limit; ; keep = keep * 3 / 4 {
		b, err := json.Marshal(s)
		if err == nil && len(b) <= limit {
			return s, cut
		}
		keep = min(keep, len(s)*3/4)
		head, tail := s[:keep/2], s[len(s)-keep/2:]
		for len(head) > 0 && !utf8.ValidString(head[max(0, len(head)-utf8.UTFMax):]) && !utf8.RuneStart(s[len(head)]) {
			head = head[:len(head)-1]
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		s, cut = head+"\n[...]\n"+tail, true
	}
}

// Turn is a running turn, given to the handler. Its methods may be used until the
// handler returns, by several goroutines.
type Turn struct {
	ID      events.TurnID
	Session events.SessionID
	Epoch   events.Epoch
	Fence   events.Fence
	Items   []events.Item
	Names   events.Names
	// Target is where the session runs commands by default; empty if it has none.
	Target events.TargetName

	conn   *Conn
	steers <-chan Steer
	lost   func() // this host no longer drives the session

	mu    sync.Mutex
	parts uint64
}

// Part publishes a piece of the reply while it is made; long ones in several messages.
// Pieces are not durable: the result's reply is the whole.
func (t *Turn) Part(text string) error {
	p := t.conn.Principal()
	subject := events.PartSubject(p.Profile, p.Name, t.Session, t.ID)
	t.mu.Lock()
	defer t.mu.Unlock()
	for text != "" {
		piece := text
		if len(piece) > events.MaxChunk {
			n := events.MaxChunk
			for n > events.MaxChunk-utf8.UTFMax && !utf8.RuneStart(text[n]) {
				n--
			}
			piece = text[:n]
		}
		text = text[len(piece):]
		t.parts++
		m := nats.NewMsg(subject)
		m.Header.Set(events.HeaderPart, strconv.FormatUint(t.parts, 10))
		m.Data = []byte(piece)
		if err := t.conn.nc.PublishMsg(m); err != nil {
			return fmt.Errorf("publish a piece of the reply: %w", t.conn.sendError(err))
		}
	}
	return nil
}

// stale ends the turn's work when the bus says that this host no longer owns it.
func (t *Turn) stale(err error) error {
	if errors.Is(err, events.ErrOf(events.CodeStaleFence)) {
		t.lost()
	}
	return err
}
