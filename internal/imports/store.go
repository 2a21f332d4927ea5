package imports

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// Headers of imported messages beside those that they came with.
const (
	headerImport = "Keryx-Import" // which import it is of
	headerOrigin = "Keryx-Origin" // the sequence that it had
	headerExec   = "Keryx-Exec"   // of a chunk
)

// Store reads and writes the stream of imports. It is safe for concurrent use and has
// nothing to close.
type Store struct {
	log *sessionlog.Log
}

// Open returns the store of a bus on a connection with full rights.
func Open(ctx context.Context, nc *nats.Conn) (*Store, error) {
	log, err := sessionlog.OpenStream(ctx, nc, events.StreamImport)
	if err != nil {
		return nil, err
	}
	return &Store{log: log}, nil
}

// place is the position of an imported message by which its part of the stream is ordered.
type place struct {
	origin events.Sequence // of a message of the record
	exec   events.ExecID   // of a chunk
}

// placeOf reads where a message stands; ok is false for one of another import.
func placeOf(m sessionlog.Stored, id events.ImportID) (p place, ok bool) {
	if m.Header.Get(headerImport) != string(id) {
		return p, false
	}
	n, err := strconv.ParseUint(m.Header.Get(headerOrigin), 10, 64)
	p = place{origin: events.Sequence(n), exec: events.ExecID(m.Header.Get(headerExec))}
	return p, err == nil || p.exec != ""
}

// span is a part of the stream, both ends included.
type span struct{ from, to events.Sequence }

// seek returns the first stream sequence of s from which on every message is wanted;
// wanted is false up to some message of the import and true from there on. It takes as
// many readings as the span has binary digits.
func (s *Store) seek(ctx context.Context, subject string, id events.ImportID, part span, wanted func(place) bool) (events.Sequence, error) {
	low, high := part.from, part.to+1
	for low < high {
		middle := low + (high-low)/2
		m, p, err := s.at(ctx, subject, id, middle)
		if err != nil {
			return 0, err
		}
		if m == 0 || m > part.to || wanted(p) {
			high = middle
		} else {
			low = m + 1
		}
	}
	return low, nil
}

// at returns the first message of an import at or behind a stream sequence; 0 for none.
func (s *Store) at(ctx context.Context, subject string, id events.ImportID, from events.Sequence) (events.Sequence, place, error) {
	for {
		page, next, err := s.log.Page(ctx, subject, from, 1, maxBytes)
		if err != nil || len(page) == 0 {
			return 0, place{}, err
		}
		if p, ok := placeOf(page[0], id); ok {
			return page[0].Sequence, p, nil
		}
		if from = next; next == 0 {
			return 0, place{}, nil
		}
	}
}

// maxBytes bounds the bodies that are in memory at once.
const maxBytes = 8 << 20

// Events returns up to limit messages of an imported record from a sequence of its own on,
// with their own sequences, and where to go on; 0 at the end.
func (s *Store) Events(ctx context.Context, p events.Profile, f events.SessionImported, from events.Sequence, limit int) ([]sessionlog.Stored, events.Sequence, error) {
	subject, begin := events.ImportSubject(p, f.Session), f.EventsFrom
	if from > f.FirstSequence {
		var err error
		begin, err = s.seek(ctx, subject, f.Import, span{f.EventsFrom, f.EventsTo}, func(at place) bool { return at.origin >= from })
		if err != nil {
			return nil, 0, fmt.Errorf("read imported session %s: %w", f.Session, err)
		}
	}
	page, _, err := s.log.Page(ctx, subject, begin, limit, maxBytes)
	if err != nil {
		return nil, 0, fmt.Errorf("read imported session %s: %w", f.Session, err)
	}
	out := page[:0]
	for _, m := range page {
		at, ok := placeOf(m, f.Import)
		if !ok || m.Sequence > f.EventsTo {
			continue
		}
		m.Sequence = at.origin
		out = append(out, m)
	}
	if n := len(out); n > 0 && out[n-1].Sequence < f.LastSequence {
		return out, out[n-1].Sequence + 1, nil
	}
	return out, 0, nil
}

// Output returns up to limit chunks of an exec's output from a sequence of the stream on
// (0 for the first), and where to go on; 0 at the end.
func (s *Store) Output(ctx context.Context, p events.Profile, f events.SessionImported, exec events.ExecID, from events.Sequence, limit int) ([]sessionlog.Stored, events.Sequence, error) {
	if f.OutputTo == 0 {
		return nil, 0, nil
	}
	subject := events.ImportSubject(p, f.Session)
	if from == 0 {
		var err error
		from, err = s.seek(ctx, subject, f.Import, span{f.OutputFrom, f.OutputTo}, func(at place) bool { return at.exec >= exec })
		if err != nil {
			return nil, 0, fmt.Errorf("read imported output of %s: %w", exec, err)
		}
	}
	page, next, err := s.log.Page(ctx, subject, from, limit, maxBytes)
	if err != nil {
		return nil, 0, fmt.Errorf("read imported output of %s: %w", exec, err)
	}
	out := page[:0]
	for _, m := range page {
		at, ok := placeOf(m, f.Import)
		if ok && (at.exec > exec || m.Sequence > f.OutputTo) {
			return out, 0, nil
		}
		if ok && at.exec == exec {
			out = append(out, m)
		}
	}
	return out, next, nil
}
