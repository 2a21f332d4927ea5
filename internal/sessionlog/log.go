package sessionlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
)

// Message is something to append.
type Message struct {
	Subject string
	Header  nats.Header
	Data    []byte
	// Expect is the sequence that the subject's last message must have, 0 for a
	// subject without any. Nil expects nothing. In a batch only the first message of
	// a subject may expect (measured on nats-server 2.15.3).
	Expect *events.Sequence
}

// Stored is a message of a stream, without the headers the server worked with.
type Stored struct {
	Subject  string
	Sequence events.Sequence
	Time     time.Time
	Header   nats.Header
	Data     []byte
}

// ErrNone means that the subject has no message.
var ErrNone = errors.New("no message on the subject")

// ErrUnknownResult means that an append was sent and no answer came: it may be on the
// log. Read again before sending it again.
var ErrUnknownResult = errors.New("the append's result is unknown")

// SequenceError means that a subject was not at the expected sequence. Nothing was
// stored.
type SequenceError struct {
	// Subject and Expected are those of the refused message; zero for a batch, of
	// which the server does not say which message it refused.
	Subject  string
	Expected events.Sequence
	// Last is the sequence that the refused message's subject is at, as far as the
	// server tells it, else 0.
	Last events.Sequence
}

// Error implements error.
func (e *SequenceError) Error() string {
	if e.Subject == "" {
		return fmt.Sprintf("a subject of the batch is at sequence %d, not where it was expected", e.Last)
	}
	return fmt.Sprintf("the subject is at sequence %d, not at %d", e.Last, e.Expected)
}

// Log reads and appends one stream. It is safe for concurrent use and has nothing to
// close; its connection belongs to the caller.
type Log struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	name   string
	marks  *HighWater // told of removals; nil for none

	counting sync.Mutex
}

// Open returns the log of the bus on a connection with full rights. The stream must
// exist.
func Open(ctx context.Context, nc *nats.Conn) (*Log, error) {
	return OpenStream(ctx, nc, events.StreamLog)
}

// OpenStream returns a view of another stream of the bus.
func OpenStream(ctx context.Context, nc *nats.Conn, name string) (*Log, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, err)
	}
	s, err := js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, err)
	}
	return &Log{nc: nc, js: js, stream: s, name: name}, nil
}

// LastSequence returns the sequence of the stream's newest message; 0 if it never had
// one.
func (l *Log) LastSequence(ctx context.Context) (events.Sequence, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read state of stream %s: %w", l.name, err)
	}
	return events.Sequence(info.State.LastSeq), nil
}

// Created returns when the stream was made.
func (l *Log) Created(ctx context.Context) (time.Time, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read state of stream %s: %w", l.name, err)
	}
	return info.Created, nil
}

// At returns the message at a sequence, or an error wrapping [ErrNone] if none is kept
// there.
func (l *Log) At(ctx context.Context, seq events.Sequence) (Stored, error) {
	m, err := l.stream.GetMsg(ctx, uint64(seq))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Stored{}, fmt.Errorf("sequence %d: %w", seq, ErrNone)
	}
	if err != nil {
		return Stored{}, fmt.Errorf("read sequence %d: %w", seq, err)
	}
	return Stored{
		Subject: m.Subject, Sequence: events.Sequence(m.Sequence), Time: m.Time,
		Header: strip(m.Header), Data: m.Data,
	}, nil
}

// Purge removes the messages of a subject or pattern before a sequence, or all of them if
// that is 0. A subject keeps its expected sequence unless all of it goes.
func (l *Log) Purge(ctx context.Context, subject string, before events.Sequence) error {
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject)}
	if before > 0 {
		opts = append(opts, jetstream.WithPurgeSequence(uint64(before)))
	}
	return l.counted(ctx, func() error {
		if err := l.stream.Purge(ctx, opts...); err != nil {
			return fmt.Errorf("purge %s before %d: %w", subject, before, err)
		}
		return nil
	})
}

// Delete removes one message and writes over it. One that is gone is no error.
func (l *Log) Delete(ctx context.Context, seq events.Sequence) error {
	return l.counted(ctx, func() error {
		err := l.stream.SecureDeleteMsg(ctx, uint64(seq))
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("delete sequence %d: %w", seq, err)
		}
		return nil
	})
}

// Last returns the newest message of a subject, which may be a pattern, or [ErrNone].
func (l *Log) Last(ctx context.Context, subject string) (Stored, error) {
	m, err := l.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Stored{}, fmt.Errorf("%s: %w", subject, ErrNone)
	}
	if err != nil {
		return Stored{}, fmt.Errorf("read last of %s: %w", subject, err)
	}
	return Stored{
		Subject: m.Subject, Sequence: events.Sequence(m.Sequence), Time: m.Time,
		Header: strip(m.Header), Data: m.Data,
	}, nil
}

// Clear removes all messages of a subject.
func (l *Log) Clear(ctx context.Context, subject string) error {
	return l.counted(ctx, func() error {
		if err := l.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return fmt.Errorf("clear %s: %w", subject, err)
		}
		return nil
	})
}
