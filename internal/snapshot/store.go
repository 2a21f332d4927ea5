package snapshot

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// maxSession is the largest snapshot of one session that is kept, 3 MiB: a message has
// at most [events.MaxPayload]. A session with more is folded from its log.
const maxSession = 3 << 20

// Store reads and writes the stream of snapshots. It is safe for concurrent use; its
// connection belongs to the caller.
type Store struct {
	nc     *nats.Conn
	log    *sessionlog.Log // of the stream KX_SNAP
	append func(context.Context, sessionlog.Message) (events.Sequence, error)
	id     Identity
}

// Open returns the snapshots of a log on a connection with full rights.
func Open(ctx context.Context, nc *nats.Conn, log *sessionlog.Log, generation uint64) (*Store, error) {
	s := &Store{nc: nc, id: Identity{Generation: generation}}
	var err error
	if s.id.Set, err = Set(); err != nil {
		return nil, err
	}
	if s.id.Created, err = log.Created(ctx); err != nil {
		return nil, err
	}
	if s.log, err = sessionlog.OpenStream(ctx, nc, events.StreamSnap); err != nil {
		return nil, err
	}
	s.append = s.log.Append
	return s, nil
}

// Session is the state of one session and the event that it goes to.
type Session struct {
	Last  events.EventID
	State *lifecycle.State
}

type keptSession struct {
	Identity Identity         `json:"identity"`
	Last     events.EventID   `json:"last"`
	State    *lifecycle.State `json:"state"`
}

// SaveSession writes a session's snapshot in place of the one before, without waiting.
// It reports false for a session that is too large for one.
func (s *Store) SaveSession(p events.Profile, id events.SessionID, k Session) (bool, error) {
	b, err := events.MarshalData(keptSession{s.id, k.Last, k.State})
	if err != nil {
		return false, fmt.Errorf("encode snapshot of session %s: %w", id, err)
	}
	if len(b) > maxSession {
		return false, nil
	}
	if err := s.nc.Publish(events.SnapSubject(p, id.Scope()), b); err != nil {
		return false, fmt.Errorf("write snapshot of session %s: %w", id, err)
	}
	return true, nil
}

// Session returns a session's snapshot; ok is false if there is none of use.
func (s *Store) Session(ctx context.Context, p events.Profile, id events.SessionID) (k Session, ok bool, err error) {
	m, err := s.log.Last(ctx, events.SnapSubject(p, id.Scope()))
	if errors.Is(err, sessionlog.ErrNone) {
		return k, false, nil
	}
	if err != nil {
		return k, false, err
	}
	var kept keptSession
	if err := json.Unmarshal(m.Data, &kept); err != nil || !kept.Identity.same(s.id) || kept.State == nil {
		return k, false, nil //nolint:nilerr // what cannot be read is as good as none
	}
	if kept.State.Session != id || kept.State.Profile != p {
		return k, false, nil
	}
	return Session{Last: kept.Last, State: kept.State}, true, nil
}

// write stores a part and returns its sequence.
func (s *Store) write(ctx context.Context, part string, v any) (events.Sequence, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return 0, fmt.Errorf("encode %s of the index: %w", part, err)
	}
	seq, err := s.append(ctx, sessionlog.Message{Subject: events.IndexSubject(part), Data: b.Bytes()})
	if err != nil {
		return 0, fmt.Errorf("write %s of the index: %w", part, err)
	}
	return seq, nil
}

func decode(b []byte, into any) error { return gob.NewDecoder(bytes.NewReader(b)).Decode(into) }
