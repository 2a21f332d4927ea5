package sessionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
)

// pageWait is how long a page waits for its next message.
const pageWait = 5 * time.Second

// scanBatch and scanBytes bound what is in memory at once of a [Log.Scan].
const (
	scanBatch = 4096
	scanBytes = 32 << 20
)

// getRequest is the body of the server's batch direct get (ADR-31 of NATS).
type getRequest struct {
	Seq      events.Sequence `json:"seq"`
	Subject  string          `json:"next_by_subj"`
	Batch    int             `json:"batch"`
	MaxBytes int             `json:"max_bytes,omitempty"`
}

// Page returns up to limit kept messages of a subject or pattern from a sequence on
// (1 is the first), and where to go on; next is 0 when the page reached the tip. The
// bytes of a page are bounded by maxBytes, but it has at least one message if there is
// one.
func (l *Log) Page(ctx context.Context, subject string, from events.Sequence, limit, maxBytes int) (page []Stored, next events.Sequence, err error) {
	if limit < 1 || from < 1 {
		return nil, 0, fmt.Errorf("page of %s: limit %d and first sequence %d must be positive", subject, limit, from)
	}
	pending, err := l.get(ctx, getRequest{Seq: from, Subject: subject, Batch: limit, MaxBytes: maxBytes}, func(s Stored) error {
		page = append(page, s)
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("page of %s from %d: %w", subject, from, err)
	}
	if pending > 0 && len(page) > 0 {
		next = page[len(page)-1].Sequence + 1
	}
	return page, next, nil
}

// Scan calls fn with every kept message of a pattern from a sequence on, in order, and
// stops at the first error.
func (l *Log) Scan(ctx context.Context, pattern string, from events.Sequence, fn func(Stored) error) error {
	for from = max(from, 1); ; {
		last := events.Sequence(0)
		pending, err := l.get(ctx, getRequest{Seq: from, Subject: pattern, Batch: scanBatch, MaxBytes: scanBytes}, func(s Stored) error {
			last = s.Sequence
			return fn(s)
		})
		if err != nil {
			return fmt.Errorf("scan %s from %d: %w", pattern, from, err)
		}
		if pending == 0 || last == 0 {
			return nil
		}
		from = last + 1
	}
}

// get runs one batch direct get and returns how many messages are left behind it.
func (l *Log) get(ctx context.Context, r getRequest, fn func(Stored) error) (pending uint64, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("encode request: %w", err)
	}
	inbox := l.nc.NewInbox()
	got := make(chan *nats.Msg, r.Batch+1) // never full: the batch, and its end
	sub, err := l.nc.ChanSubscribe(inbox, got)
	if err != nil {
		return 0, fmt.Errorf("subscribe: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(sub.Unsubscribe())) }()
	if err := l.nc.PublishRequest("$JS.API.DIRECT.GET."+l.name, inbox, body); err != nil {
		return 0, fmt.Errorf("request: %w", err)
	}
	patience := time.NewTimer(pageWait)
	defer patience.Stop()
	for {
		m, err := next(ctx, got, patience)
		if err != nil {
			return 0, err
		}
		pending, end, err := endOf(m)
		if end || err != nil {
			return pending, err
		}
		s, err := stored(m)
		if err != nil {
			return 0, err
		}
		if err := fn(s); err != nil {
			return 0, err
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil // the reading has its own error then
	}
	return err
}

// next waits for a message, anew for pageWait.
func next(ctx context.Context, got <-chan *nats.Msg, patience *time.Timer) (*nats.Msg, error) {
	select {
	case m := <-got: // the usual case, without touching the timer
		return m, nil
	default:
	}
	patience.Reset(pageWait)
	select {
	case m := <-got:
		return m, nil
	case <-patience.C:
		return nil, fmt.Errorf("no message came within %v", pageWait)
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the next message: %w", context.Cause(ctx))
	}
}

// endOf tells whether m ends a batch: 204 after the last message, 404 for none at all.
func endOf(m *nats.Msg) (pending uint64, end bool, err error) {
	switch status := m.Header.Get("Status"); status {
	case "":
		return 0, false, nil
	case "204":
		pending, err := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
		if err != nil {
			return 0, true, fmt.Errorf("decode the batch's end: %w", err)
		}
		return pending, true, nil
	case "404": // none at all
		return 0, true, nil
	case "503": // no responders
		return 0, true, events.Errorf(events.CodeUnavailable, "no stream answers now")
	default:
		return 0, true, fmt.Errorf("the server answered %s %s", status, m.Header.Get("Description"))
	}
}

func stored(m *nats.Msg) (Stored, error) {
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return Stored{}, fmt.Errorf("decode sequence: %w", err)
	}
	when, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return Stored{}, fmt.Errorf("decode time of sequence %d: %w", seq, err)
	}
	return Stored{
		Subject: m.Header.Get(jetstream.SubjectHeader), Sequence: events.Sequence(seq), Time: when,
		Header: strip(m.Header), Data: m.Data,
	}, nil
}

// strip removes the server's own headers: they say how a message was stored, not what
// it is.
func strip(h nats.Header) nats.Header {
	for k := range h {
		if strings.HasPrefix(k, "Nats-") {
			delete(h, k)
		}
	}
	return h
}
