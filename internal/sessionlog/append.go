package sessionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
)

// Append appends one message and returns its sequence. It returns *[SequenceError],
// [ErrUnknownResult], or *[events.Error] with code store_full.
func (l *Log) Append(ctx context.Context, m Message) (events.Sequence, error) {
	ack, err := l.request(ctx, m.encode())
	if err != nil {
		return 0, err
	}
	return events.Sequence(ack.Sequence), nil
}

// AppendBatch appends messages all or none and returns their sequences. Errors are
// those of [Log.Append].
func (l *Log) AppendBatch(ctx context.Context, ms []Message) ([]events.Sequence, error) {
	if len(ms) == 0 {
		return nil, errors.New("append batch: no messages")
	}
	id := nuid.Next()
	for i, m := range ms[:len(ms)-1] {
		if err := l.nc.PublishMsg(m.encodeIn(id, i+1)); err != nil {
			return nil, fmt.Errorf("append batch to %s: %w", m.Subject, err)
		}
	}
	last := ms[len(ms)-1].encodeIn(id, len(ms))
	last.Header.Set(batchCommit, "1")
	ack, err := l.request(ctx, last)
	if err != nil {
		return nil, err
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

func (l *Log) request(ctx context.Context, m *nats.Msg) (pubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, ackWait)
	defer cancel()
	answer, err := l.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return pubAck{}, events.Errorf(events.CodeUnavailable, "no stream takes %s", m.Subject)
	}
	if err != nil {
		return pubAck{}, fmt.Errorf("append to %s: %w: %w", m.Subject, ErrUnknownResult, err)
	}
	var ack pubAck
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return pubAck{}, fmt.Errorf("append to %s: decode the server's answer: %w: %w", m.Subject, ErrUnknownResult, err)
	}
	return ack, translate(m.Subject, ack.Error)
}

// translate makes the server's refusal one of this package's errors.
func translate(subject string, e *jetstream.APIError) error {
	if e == nil {
		return nil
	}
	switch e.ErrorCode {
	case errWrongLast, errWrongLastConstant:
		return &SequenceError{Subject: subject, Reason: e.Description}
	case errStoreFailed, errInsufficient, errAccountExceeded, errStorageExceeded:
		return events.Errorf(events.CodeStoreFull, "the store took nothing: %s", e.Description)
	}
	return fmt.Errorf("append to %s: %w", subject, e)
}
