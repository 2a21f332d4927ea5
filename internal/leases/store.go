package leases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// endedTTL is how long an ended record is kept, so that its former holder can be told
// and may renew back (design section 6).
const endedTTL = time.Hour

const keyPrefix = "$KV." + events.BucketLeases + "."

// errConflict means that a record was changed by somebody else meanwhile.
var errConflict = errors.New("the lease was changed by another")

// entry is a record with the revision it has in the bucket.
type entry struct {
	record   events.LeaseRecord // zero: no lease
	revision events.Sequence    // of the last write of any kind; 0: none kept
	// until is until when its holder may act, by what a granter has seen. Not stored.
	until time.Duration
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

// bucket is where leases are kept. write replaces what was read at a revision, or
// returns errConflict together with what is there instead. watch tells that a key was
// written, as far as one notices; its channel has size 1 and coalesces.
type bucket interface {
	read(ctx context.Context, k events.LeaseKey) (entry, error)
	write(ctx context.Context, k events.LeaseKey, over events.Sequence, rec events.LeaseRecord) (entry, error)
	all(ctx context.Context, fn func(events.LeaseKey, entry)) error
	watch(k events.LeaseKey) (changed <-chan struct{}, stop func(), err error)
}

// Store is the bucket. It is safe for concurrent use; its connection belongs to the
// caller.
type Store struct {
	log *sessionlog.Log
	nc  *nats.Conn
}

var _ bucket = (*Store)(nil)

// OpenStore opens the lease bucket on a connection with full rights.
func OpenStore(ctx context.Context, nc *nats.Conn) (*Store, error) {
	log, err := sessionlog.OpenStream(ctx, nc, "KV_"+events.BucketLeases)
	if err != nil {
		return nil, fmt.Errorf("open lease bucket: %w", err)
	}
	return &Store{log: log, nc: nc}, nil
}

// read returns the entry of a key; a zero one if there is none.
func (s *Store) read(ctx context.Context, k events.LeaseKey) (entry, error) {
	m, err := s.log.Last(ctx, keyPrefix+k.String())
	if errors.Is(err, sessionlog.ErrNone) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, fmt.Errorf("read lease %s: %w", k, err)
	}
	return decode(m), nil
}

// decode returns a message as an entry. A body that is no record is no lease: an expiry
// marker's is empty, and what a damaged store made of one could be neither renewed nor
// released by anybody.
func decode(m sessionlog.Stored) entry {
	e := entry{revision: m.Sequence}
	if err := json.Unmarshal(m.Data, &e.record); err != nil || e.record.State == "" {
		e.record = events.LeaseRecord{}
	}
	return e
}

// write replaces the entry that was read at a revision, or returns errConflict.
func (s *Store) write(ctx context.Context, k events.LeaseKey, over events.Sequence, rec events.LeaseRecord) (entry, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return entry{}, fmt.Errorf("encode lease %s: %w", k, err)
	}
	m := sessionlog.Message{Subject: keyPrefix + k.String(), Data: body, Expect: &over}
	if rec.State != events.LeaseHeld {
		m.Header = nats.Header{jetstream.MsgTTLHeader: {endedFor(rec).String()}}
	}
	seq, err := s.log.Append(ctx, m)
	var stale *sessionlog.SequenceError
	if errors.As(err, &stale) || errors.Is(err, sessionlog.ErrUnknownResult) {
		return s.settle(ctx, k, over, rec, err)
	}
	if err != nil {
		return entry{}, fmt.Errorf("write lease %s: %w", k, err)
	}
	return entry{record: rec, revision: seq}, nil
}

// settle finds out what is there after a write was refused or its answer was lost. A lost
// write was done if the key has this very record and has moved: whoever else wrote it
// wrote the same.
func (s *Store) settle(ctx context.Context, k events.LeaseKey, over events.Sequence, rec events.LeaseRecord, cause error) (entry, error) {
	now, err := s.read(ctx, k)
	unknown := errors.Is(cause, sessionlog.ErrUnknownResult)
	switch {
	case err != nil:
		return entry{}, errors.Join(cause, err)
	case unknown && now.revision == over:
		return entry{}, fmt.Errorf("write lease %s: %w", k, cause) // not done, or not yet
	case unknown && now.record == rec:
		return now, nil
	}
	return now, fmt.Errorf("write lease %s: %w", k, errConflict)
}

// all calls fn with every entry of the bucket that has a lease's key.
func (s *Store) all(ctx context.Context, fn func(events.LeaseKey, entry)) error {
	return s.log.Scan(ctx, keyPrefix+">", 1, func(m sessionlog.Stored) error {
		key, err := events.ParseLeaseKey(strings.TrimPrefix(m.Subject, keyPrefix))
		if err == nil {
			fn(key, decode(m))
		}
		return nil
	})
}

// watch hears the republished changes of a key.
func (s *Store) watch(k events.LeaseKey) (<-chan struct{}, func(), error) {
	changed := make(chan struct{}, 1)
	sub, err := s.nc.Subscribe(events.LeaseSubject(k), func(*nats.Msg) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch lease %s: %w", k, err)
	}
	return changed, func() { _ = sub.Unsubscribe() }, nil // fails only on a closed connection
}

// endedFor is how long an ended record is kept: a revoked one until its holder cannot act
// any more, and the hour.
func endedFor(rec events.LeaseRecord) time.Duration {
	if rec.State == events.LeaseRevoked {
		return endedTTL + holdOf(rec).Truncate(time.Second) + 2*time.Second
	}
	return endedTTL
}

// holdOf is how long a holder and what it runs may act after a renewal.
func holdOf(rec events.LeaseRecord) time.Duration {
	return ttlOf(rec) + time.Duration(rec.GraceMS)*time.Millisecond
}

func ttlOf(rec events.LeaseRecord) time.Duration { return time.Duration(rec.TTLMS) * time.Millisecond }
