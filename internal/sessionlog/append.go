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
	"github.com/nats-io/nuid"

	"keryx/events"
)

// ackWait is how long an append waits for the server, in the same process: a synced
// write takes milliseconds, a stalled disk seconds.
const ackWait = 5 * time.Second

// Headers of the server's atomic batch publish (ADR-50 of NATS).
const (
	batchID       = "Nats-Batch-Id"
	batchSequence = "Nats-Batch-Sequence"
	batchCommit   = "Nats-Batch-Commit"
)

// Error codes of the server (nats-server server/errors.json).
const (
	errWrongLast         = 10071
	errWrongLastConstant = 10164
	errStoreFailed       = 10077
	errInsufficient      = 10023
	errAccountExceeded   = 10002
	errStorageExceeded   = 10047
	errTooManyRequests   = 10167
	errTooManyBatches    = 10210
	errBatchIncomplete   = 10176 // its first message met too many batches
)

// storeClosed is how the server says, under the code of a full store, that it is
// shutting down; it has no other mark.
const storeClosed = "store is closed"

// maxBatch is how many messages the server takes in one atomic batch.
const maxBatch = 1000

// Append appends one message and returns its sequence. It returns *[SequenceError],
// [ErrUnknownResult], or *[events.Error] with code store_full.
func (l *Log) Append(ctx context.Context, m Message) (events.Sequence, error) {
	ack, err := l.request(ctx, m.encode())
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", m.Subject, m.stale(err))
	}
	return events.Sequence(ack.Sequence), nil
}

// stale completes a *[SequenceError] with what m expected.
func (m Message) stale(err error) error {
	var stale *SequenceError
	if errors.As(err, &stale) && m.Expect != nil {
		stale.Subject, stale.Expected = m.Subject, *m.Expect
	}
	return err
}

// AppendBatch appends up to 1,000 messages all or none and returns their sequences.
// Errors are those of [Log.Append].
func (l *Log) AppendBatch(ctx context.Context, ms []Message) ([]events.Sequence, error) {
	if len(ms) == 0 || len(ms) > maxBatch {
		return nil, fmt.Errorf("append batch: %d messages; it takes 1 to %d", len(ms), maxBatch)
	}
	id := nuid.Next()
	for i, m := range ms[:len(ms)-1] {
		if err := l.nc.PublishMsg(m.encodeIn(id, i+1)); err != nil {
			return nil, fmt.Errorf("append batch to %s: %w", m.Subject, err) // never committed
		}
	}
	last := ms[len(ms)-1].encodeIn(id, len(ms))
	last.Header.Set(batchCommit, "1")
	ack, err := l.request(ctx, last)
	if err != nil {
		return nil, fmt.Errorf("append batch of %d, the last to %s: %w", len(ms), last.Subject, err)
	}
	out := make([]events.Sequence, len(ms))
	for i := range out { // the ack is for the last; the batch is stored without gap
		out[i] = events.Sequence(ack.Sequence) - events.Sequence(len(ms)-1-i)
	}
	return out, nil
}

func (m Message) encode() *nats.Msg {
	out := nats.NewMsg(m.Subject)
	for k, v := range m.Header {
		out.Header[k] = v
	}
	if m.Expect != nil {
		out.Header.Set(jetstream.ExpectedLastSubjSeqHeader, m.Expect.String())
	}
	out.Data = m.Data
	return out
}

func (m Message) encodeIn(batch string, n int) *nats.Msg {
	out := m.encode()
	out.Header.Set(batchID, batch)
	out.Header.Set(batchSequence, strconv.Itoa(n))
	return out
}

type pubAck struct {
	Sequence uint64              `json:"seq"`
	Error    *jetstream.APIError `json:"error"`
}

// request sends m and waits for the server's answer to it: one round trip.
func (l *Log) request(ctx context.Context, m *nats.Msg) (pubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, ackWait)
	defer cancel()
	answer, err := l.nc.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return pubAck{}, events.Errorf(events.CodeUnavailable, "no stream takes messages now")
	case errors.Is(err, nats.ErrMaxPayload):
		return pubAck{}, events.Errorf(events.CodeTooLarge, "the message has %d bytes", len(m.Data))
	case err != nil:
		return pubAck{}, fmt.Errorf("%w: %w", ErrUnknownResult, err)
	}
	var ack pubAck
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return pubAck{}, fmt.Errorf("decode the server's answer: %w: %w", ErrUnknownResult, err)
	}
	if ack.Error == nil && ack.Sequence == 0 {
		return pubAck{}, fmt.Errorf("the server's answer %q names no sequence: %w", answer.Data, ErrUnknownResult)
	}
	return ack, translate(ack.Error)
}

// translate makes the server's refusal one of this package's errors.
func translate(e *jetstream.APIError) error {
	if e == nil {
		return nil
	}
	switch e.ErrorCode {
	case errWrongLast, errWrongLastConstant:
		return &SequenceError{Last: lastOf(e.Description)}
	case errStoreFailed, errInsufficient, errAccountExceeded, errStorageExceeded:
		if e.Description == storeClosed {
			return events.Errorf(events.CodeUnavailable, "the store is closed")
		}
		return events.Errorf(events.CodeStoreFull, "the store took nothing: %s", e.Description)
	case errTooManyRequests, errTooManyBatches, errBatchIncomplete:
		return events.Errorf(events.CodeUnavailable, "the server is busy: %s", e.Description)
	}
	return e
}

// lastOf reads the sequence that ends "wrong last sequence: 7"; a replicated stream
// does not say it.
func lastOf(description string) events.Sequence {
	_, number, _ := strings.Cut(description, ": ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return events.Sequence(n)
}
