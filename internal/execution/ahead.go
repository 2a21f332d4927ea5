package execution

import (
	"context"
	"time"

	"keryx/events"
)

const (
	// aheadBytes and aheadChunks are how much may be under way before the bus is asked
	// whether it keeps up: the stream gives no acknowledgements, and a server that is
	// flooded drops.
	aheadBytes  = 4 << 20
	aheadChunks = 256
	// exactBytes is after how much the bus is asked which chunk it has stored. In between its
	// pulse has to do: reading a chunk makes a server keep the block that it is in, 8 MiB,
	// in memory for 10 s (measured on 2.15.3: with a read in each block a flood of 15 MB/s
	// took 60 MB).
	exactBytes = 64 << 20
	// exactEvery is how long such a block stays there: a faster flood is not asked more often.
	exactEvery = 10 * time.Second
	// keepUp bounds the wait for a bus that does not keep up, keepUpLess the further
	// ones until it has. What it dropped is sent again at the end.
	keepUp     = 2 * time.Second
	keepUpLess = 50 * time.Millisecond
	// catchUpPause is between two questions whether it has.
	catchUpPause = 5 * time.Millisecond
)

// ahead is how far a sender is ahead of what is known to be stored.
type ahead struct {
	behind bool  // the bus did not keep up when it was asked last
	bytes  int64 // under way since then
	chunks int
	newest uint64
	exact  int64     // bytes until it is asked exactly
	asked  time.Time // exactly
	// stored is the last chunk that is known to be stored, at a position of the stream.
	stored uint64
	at     events.Sequence
}

// sent notes a chunk and reports whether it is time to ask.
func (a *ahead) sent(c chunk) bool {
	a.newest = c.number
	a.bytes, a.chunks, a.exact = a.bytes+c.length, a.chunks+1, a.exact-c.length
	return a.bytes >= aheadBytes || a.chunks >= aheadChunks
}

// question is what to ask now.
func (a *ahead) question(q events.Output, now time.Time) events.Output {
	if a.at == 0 || a.exact <= 0 && now.Sub(a.asked) >= exactEvery || a.behind {
		a.asked = now
		q.TipOnly = true
		return q
	}
	q.Pulse = true
	return q
}

// answered takes the answer to a question. A pulse counts what others store, too: where they
// do, it lets this sender get further ahead, until it asks exactly.
func (a *ahead) answered(q events.Output, page events.OutputPage) {
	stored := page.Stored
	if q.Pulse {
		stored = a.stored + uint64(max(page.Position, a.at)-a.at)
	} else {
		a.stored, a.at, a.exact = page.Stored, page.Position, exactBytes
	}
	a.behind = stored+aheadChunks/4 < a.newest
}

// letCatchUp waits until the bus has stored most of what was sent.
func (s *sender) letCatchUp(ctx context.Context) {
	s.bytes, s.chunks = 0, 0
	limit := keepUp
	if s.behind {
		limit = keepUpLess
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	q := s.question(events.Output{Session: s.session, Exec: s.exec}, time.Now())
	for {
		var page events.OutputPage
		if err := s.bus.Do(ctx, events.CmdExecOutput, q, &page); err != nil {
			s.behind = true
		} else if s.answered(q, page); !s.behind {
			return
		}
		if sleep(ctx, catchUpPause) != nil {
			s.suspect = true // an error shows again at the end, where it matters
			return
		}
	}
}
