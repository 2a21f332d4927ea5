package imports

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/archive"
	"keryx/internal/sessionlog"
)

// Messages are appended in batches: each costs one sync. The bounds are those of memory;
// the server takes 1,000 messages at most.
const (
	batchMessages = 256
	batchBytes    = 1 << 20
)

// Upload takes the file of one import. It is safe for concurrent use.
type Upload struct {
	store   *Store
	profile events.Profile
	session events.SessionID
	content string
	id      events.ImportID

	mu     sync.Mutex
	feed   archive.Feeder
	offset int64
	batch  []sessionlog.Message
	bytes  int
	chunks int // how many of the batch are output
	fact   events.SessionImported
	used   time.Time
	failed error
}

// Begin makes room for the record of a session, of which nothing may be visible: what an
// upload that was given up has left is removed.
func (s *Store) Begin(ctx context.Context, p events.Profile, b events.BeginImport, id events.ImportID) (*Upload, error) {
	if err := s.log.Clear(ctx, events.ImportSubject(p, b.Session)); err != nil {
		return nil, fmt.Errorf("begin import of session %s: %w", b.Session, err)
	}
	return &Upload{store: s, profile: p, session: b.Session, content: b.Content, id: id, used: time.Now()}, nil
}

// ID returns the import's id.
func (u *Upload) ID() events.ImportID { return u.id }

// Of returns whose record is imported.
func (u *Upload) Of() (events.Profile, events.SessionID) { return u.profile, u.session }

// Used returns when the upload was moved on last.
func (u *Upload) Used() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used
}

// Put takes the piece that begins at an offset, and returns where the next one begins. A
// piece that was taken before changes nothing. A file that is not as it was exported is
// *[events.Error] with code invalid, naming the line; the upload has failed then.
func (u *Upload) Put(ctx context.Context, offset int64, piece []byte) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used = time.Now()
	switch {
	case u.failed != nil:
		return u.offset, u.failed
	case offset+int64(len(piece)) <= u.offset:
		return u.offset, nil
	case offset != u.offset:
		return u.offset, events.Errorf(events.CodeInvalid, "the piece begins at byte %d, the import goes on at byte %d", offset, u.offset)
	}
	err := u.feed.Feed(piece, func(i archive.Item) error { return u.take(ctx, i) })
	if err == nil {
		err = u.flush(ctx)
	}
	if err != nil {
		u.failed = refusal(err)
		return u.offset, u.failed
	}
	u.offset += int64(len(piece))
	return u.offset, nil
}

// refusal makes what is wrong with a file an error for who sent it.
func refusal(err error) error {
	var line *archive.LineError
	if errors.As(err, &line) {
		return events.Errorf(events.CodeInvalid, "%v", line).With("line", strconv.Itoa(line.Line))
	}
	return err
}

func (u *Upload) take(ctx context.Context, i archive.Item) error {
	if h := u.feed.Header(); h.Session != u.session || h.Content.String() != u.content {
		return &archive.LineError{Line: 1, Err: fmt.Errorf("%w: the header is not the one that was announced", archive.ErrForm)}
	}
	subject := events.ImportSubject(u.profile, u.session)
	var m sessionlog.Message
	switch {
	case i.Message != nil:
		m = sessionlog.Message{Subject: subject, Header: nats.Header(i.Message.Header), Data: i.Message.Data}
		if m.Header == nil {
			m.Header = nats.Header{}
		}
		m.Header.Set(headerOrigin, i.Message.Sequence.String())
	case i.Chunk != nil:
		m = sessionlog.Message{Subject: subject, Header: chunkHeader(*i.Chunk), Data: i.Chunk.Data}
		u.chunks++
	default:
		return nil
	}
	m.Header.Set(headerImport, string(u.id))
	u.batch = append(u.batch, m)
	u.bytes += len(m.Data)
	if len(u.batch) >= batchMessages || u.bytes >= batchBytes {
		return u.flush(ctx)
	}
	return nil
}

func chunkHeader(c archive.Chunk) nats.Header {
	h := nats.Header{}
	h.Set(headerExec, string(c.Exec))
	h.Set(events.HeaderStream, c.Stream)
	h.Set(events.HeaderOffset, strconv.FormatInt(c.Offset, 10))
	h.Set(events.HeaderChunk, strconv.FormatUint(c.Number, 10))
	if c.TimeUS != 0 {
		h.Set(events.HeaderTime, strconv.FormatInt(c.TimeUS, 10))
	}
	return h
}

// flush appends what waits. Output comes behind the record, so a batch may hold the end of
// one and the beginning of the other.
func (u *Upload) flush(ctx context.Context) error {
	if len(u.batch) == 0 {
		return nil
	}
	sequences, err := u.store.log.AppendBatch(ctx, u.batch)
	if err != nil {
		return fmt.Errorf("import session %s: %w", u.session, err)
	}
	messages := len(u.batch) - u.chunks
	if messages > 0 {
		u.fact.EventsFrom = first(u.fact.EventsFrom, sequences[0])
		u.fact.EventsTo = sequences[messages-1]
	}
	if u.chunks > 0 {
		u.fact.OutputFrom = first(u.fact.OutputFrom, sequences[messages])
		u.fact.OutputTo = sequences[len(sequences)-1]
	}
	u.batch, u.bytes, u.chunks = u.batch[:0], 0, 0
	return nil
}

func first(known, now events.Sequence) events.Sequence {
	if known != 0 {
		return known
	}
	return now
}

// End returns the event by which the record is there. It fails, with code invalid, if the
// file has not come whole.
func (u *Upload) End() (events.SessionImported, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used = time.Now()
	if u.failed != nil {
		return events.SessionImported{}, u.failed
	}
	if err := u.feed.Done(); err != nil {
		return events.SessionImported{}, refusal(err)
	}
	h, f := u.feed.Header(), u.fact
	f.Session, f.Import, f.FromProfile, f.ExportedAt = u.session, u.id, h.Profile, h.ExportedAt
	f.Content, f.Schemas, f.Redaction, f.Events, f.Chunks = u.content, h.Schemas, h.Redaction, h.Events, h.Chunks
	f.FirstSequence, f.FirstOrdinal, f.LastSequence, f.LastOrdinal = h.First.Sequence, h.First.Ordinal, h.Last.Sequence, h.Last.Ordinal
	return f, nil
}
