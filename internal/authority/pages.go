package authority

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// Bounds of one page: messages, and bytes of their bodies.
const (
	pageLimit = 1000
	pageBytes = 8 << 20
)

// logPage sends a page of a scope: the messages as they are stored, then the end.
func (t *term) logPage(ctx context.Context, req *request) {
	q := req.data.(events.LogPage)
	limit := q.Limit
	if limit <= 0 || limit > pageLimit {
		limit = pageLimit
	}
	p := req.caller.Profile
	if known, err := t.accountKnown(ctx, p, q.Scope); err != nil {
		t.fail(req, err)
		return
	} else if scopeErr := t.checkScope(p, q.Scope); !known && scopeErr != nil {
		t.fail(req, scopeErr)
		return
	}
	if f, ok := t.importOf(p, q.Scope); ok {
		end, err := t.importPage(ctx, req, f, q, limit)
		if err != nil {
			t.fail(req, err)
			return
		}
		t.answerEnd(req.reply, end)
		return
	}
	tip, _ := t.tip(p, q.Scope)
	page, next, err := t.cfg.Log.Page(ctx, events.LogSubject(p, q.Scope), max(q.From, 1), limit, pageBytes)
	if err != nil {
		t.fail(req, fmt.Errorf("read %s: %w", q.Scope, err))
		return
	}
	for _, m := range page {
		t.forward(req.reply, m)
	}
	end := events.LogPageEnd{Next: next, Tip: tip}
	if len(page) > 0 {
		end.First = page[0].Sequence
	}
	t.answerEnd(req.reply, end)
}

// checkScope refuses a scope that does not exist, so that a typing mistake is not an
// empty record.
func (t *term) checkScope(p events.Profile, s events.Scope) error {
	if run := s.Run(); run != "" {
		return t.knowsRun(p, run)
	}
	if s == events.ScopeProfile || t.sessions.lane(p, events.SessionID(s)) != nil {
		return nil
	}
	if _, ok := t.importOf(p, s); ok {
		return nil
	}
	return unknownSession(string(s))
}

func (t *term) forward(reply string, m sessionlog.Stored) {
	out := nats.NewMsg(reply)
	for k, v := range m.Header {
		out.Header[k] = v
	}
	out.Header.Set(events.HeaderSequence, m.Sequence.String())
	out.Data = m.Data
	if err := t.cfg.Conn.PublishMsg(out); err != nil {
		t.logger.Warn("send a page", "error", err)
	}
}

// output sends stored output chunks of an exec, then what is known of the rest. It is
// where the executor that the exec was sent to writes it: what another executor wrote
// under the same ids is not that exec's. A setup run is named by its id in both places.
func (t *term) output(req *request, q events.Output) {
	p := req.caller.Profile
	if !events.IsULID(string(q.Session)) || !events.IsULID(string(q.Exec)) {
		t.fail(req, events.Errorf(events.CodeInvalid, "session and exec are ULIDs"))
		return
	}
	if f, ok := t.importOf(p, outputScope(q)); ok {
		t.inBackground(req, func(ctx context.Context, req *request) { t.importOutput(ctx, req, f, q) })
		return
	}
	l := t.sessions.lane(p, q.Session)
	if run := events.RunID(q.Session); l == nil && q.Exec == events.ExecID(run) {
		t.setupOutput(req, q, run)
		return
	}
	if l == nil {
		t.fail(req, unknownSession(string(q.Session)))
		return
	}
	t.onLane(req, l, func(ctx context.Context) {
		executor, err := l.executorOf(ctx, q.Exec)
		if err != nil {
			t.fail(req, err)
			return
		}
		subject := events.OutSubject(p, executor, q.Session, q.Exec)
		t.inBackground(req, func(ctx context.Context, req *request) { t.sendOutput(ctx, req, q, subject) })
	})
}

func (t *term) sendOutput(ctx context.Context, req *request, q events.Output, subject string) {
	end, err := t.outputPage(ctx, req, q, subject)
	if err != nil {
		t.fail(req, fmt.Errorf("read output of %s: %w", q.Exec, err))
		return
	}
	t.answerEnd(req.reply, end)
}

// outputPageLimit bounds a page of output: chunks may have 64 KiB each, and the bus holds a
// page about four times on its way.
const outputPageLimit = 32

func (t *term) outputPage(ctx context.Context, req *request, q events.Output, subject string) (events.OutputPage, error) {
	out, err := sessionlog.OpenStream(ctx, t.cfg.Conn, events.StreamOut)
	if err != nil {
		return events.OutputPage{}, err
	}
	var end events.OutputPage
	if q.Pulse {
		end.Position, err = out.LastSequence(ctx)
		return end, err
	}
	if !q.TipOnly {
		var page []sessionlog.Stored
		page, end.Next, err = out.Page(ctx, subject, max(q.From, 1), outputPageLimit, pageBytes)
		for _, m := range page {
			t.forward(req.reply, m)
			end.Stored, end.Position = chunkNumber(m), m.Sequence
		}
	}
	if err == nil && end.Position == 0 {
		end.Stored, end.Position, err = lastChunk(ctx, out, subject)
	}
	if err == nil && q.Audit {
		end.Stored, end.Missing, err = auditChunks(ctx, out, subject)
	}
	return end, err
}

func lastChunk(ctx context.Context, out *sessionlog.Log, subject string) (uint64, events.Sequence, error) {
	m, err := out.Last(ctx, subject)
	if errors.Is(err, sessionlog.ErrNone) || errors.Is(err, jetstreamext.ErrNoMessages) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	return chunkNumber(m), m.Sequence, nil
}

func chunkNumber(m sessionlog.Stored) uint64 {
	n, err := strconv.ParseUint(m.Header.Get(events.HeaderChunk), 10, 64)
	if err != nil {
		return 0 // an executor that numbers nothing has stored nothing that counts
	}
	return n
}

// auditChunks reads all chunks of an exec and returns the highest number and the holes
// below it. After a re-send the last stored chunk need not be the highest.
func auditChunks(ctx context.Context, out *sessionlog.Log, subject string) (top uint64, holes []events.ChunkRange, err error) {
	seen := make(map[uint64]bool)
	for from := events.Sequence(1); from != 0; {
		page, next, err := out.Page(ctx, subject, from, outputPageLimit, pageBytes)
		if err != nil {
			return 0, nil, err
		}
		for _, m := range page {
			n := chunkNumber(m)
			seen[n] = true
			top = max(top, n)
		}
		from = next
	}
	for n := uint64(1); n <= top; n++ {
		switch {
		case seen[n]:
		case len(holes) > 0 && holes[len(holes)-1].To == n-1:
			holes[len(holes)-1].To = n
		default:
			holes = append(holes, events.ChunkRange{From: n, To: n})
		}
	}
	return top, holes, nil
}
