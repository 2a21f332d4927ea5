package leases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// endedTTL is how long an ended record is kept, so that its former holder can be told
// and may renew back (design section 6).
const endedTTL = "1h"

const keyPrefix = "$KV." + events.BucketLeases + "."

// errConflict means that a record was changed by somebody else meanwhile.
var errConflict = errors.New("the lease was changed by another")

// entry is a record with the revision it has in the bucket.
type entry struct {
	record   events.LeaseRecord // zero: no lease
	revision events.Sequence    // of the last write of any kind; 0: none kept
}

// fence returns the fence of the record under a generation: its own, or, on the
// acquiring write, its revision.
func (e entry) fence(generation uint64) events.Fence {
	if !e.record.Fence.IsZero() {
		return e.record.Fence
	}
	if e.record.State == "" {
		return events.Fence{}
	}
	return events.Fence{Generation: generation, Sequence: e.revision}
}

// Store is the bucket. It is safe for concurrent use; its connection belongs to the
// caller.
type Store struct{ log *sessionlog.Log }

// OpenStore opens the lease bucket on a connection with full rights.
func OpenStore(ctx context.Context, nc *nats.Conn) (*Store, error) {
	log, err := sessionlog.OpenStream(ctx, nc, "KV_"+events.BucketLeases)
	if err != nil {
		return nil, fmt.Errorf("open lease bucket: %w", err)
	}
	return &Store{log: log}, nil
}

// read returns the entry of a key; a zero one if there is none. An empty body, as an
// expiry marker has, is never a lease.
func (s *Store) read(ctx context.Context, k events.LeaseKey) (entry, error) {
	m, err := s.log.Last(ctx, keyPrefix+k.String())
	if errors.Is(err, sessionlog.ErrNone) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, fmt.Errorf("read lease %s: %w", k, err)
	}
	return decode(m)
}

func decode(m sessionlog.Stored) (entry, error) {
	e := entry{revision: m.Sequence}
	if len(m.Data) == 0 {
		return e, nil
	}
	if err := json.Unmarshal(m.Data, &e.record); err != nil {
		return e, fmt.Errorf("decode lease %s: %w", strings.TrimPrefix(m.Subject, keyPrefix), err)
	}
	return e, nil
}

// write replaces the entry that was read at a revision, or returns errConflict.
func (s *Store) write(ctx context.Context, k events.LeaseKey, over events.Sequence, rec events.LeaseRecord) (entry, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return entry{}, fmt.Errorf("encode lease %s: %w", k, err)
	}
	m := sessionlog.Message{Subject: keyPrefix + k.String(), Data: body, Expect: &over}
	if rec.State != events.LeaseHeld {
		m.Header = nats.Header{"Nats-TTL": {endedTTL}}
	}
	seq, err := s.log.Append(ctx, m)
	var stale *sessionlog.SequenceError
	if errors.As(err, &stale) || errors.Is(err, sessionlog.ErrUnknownResult) {
		return s.settle(ctx, k, rec, err)
	}
	if err != nil {
		return entry{}, fmt.Errorf("write lease %s: %w", k, err)
	}
	return entry{record: rec, revision: seq}, nil
}

// settle finds out whether a write whose answer was lost or refused is in force after
// all: only this writer writes this very record over that revision.
func (s *Store) settle(ctx context.Context, k events.LeaseKey, rec events.LeaseRecord, cause error) (entry, error) {
	now, err := s.read(ctx, k)
	if err != nil {
		return entry{}, errors.Join(cause, err)
	}
	if errors.Is(cause, sessionlog.ErrUnknownResult) && now.record == rec {
		return now, nil
	}
	return now, fmt.Errorf("write lease %s: %w", k, errConflict)
}

// all calls fn with every entry of the bucket.
func (s *Store) all(ctx context.Context, fn func(events.LeaseKey, entry)) error {
	return s.log.Scan(ctx, keyPrefix+">", 1, func(m sessionlog.Stored) error {
		key, err := events.ParseLeaseKey(strings.TrimPrefix(m.Subject, keyPrefix))
		if err != nil {
			return err
		}
		e, err := decode(m)
		if err != nil {
			return err
		}
		fn(key, e)
		return nil
	})
}

func ttlOf(rec events.LeaseRecord) time.Duration { return time.Duration(rec.TTLMS) * time.Millisecond }
