package execution

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"log/slog"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/process"
)

const (
	// keptChunks is how many chunks of one command the bus keeps (design section 3).
	keptChunks = 1024
	// crowded is how much output may wait to be sent before the command is slowed down.
	crowded = 8 << 20
	// stalled is how long sending may stand still before the command is no longer
	// slowed down for it: the bus is away, and the spool fills up to its bound.
	stalled = time.Second
	// maxRuns bounds the list of runs, for output that alternates between the streams
	// byte by byte while the bus is away.
	maxRuns = 1 << 16
)

// run is unsent output of one stream, contiguous in the sequence of all output.
type run struct {
	stream process.Stream
	pos    int64 // in the sequence
	offset int64 // in the stream
	length int64
	at     time.Time    // when its first byte came
	size   process.Size // of the terminal then; zero for none
}

// chunk is output that has a number.
type chunk struct {
	run
	number uint64
}

// spool takes output and gives it away in chunks. Chunks stay readable, the newest
// keptChunks at least for as long as the ring has room. Safe for concurrent use by one
// writer and one sender.
type spool struct {
	logger *slog.Logger
	wake   chan struct{} // for the sender: there is something, or the end
	room   chan struct{} // for the writer: something was sent

	mu      sync.Mutex
	ring    ring
	tail    int64 // end of the sequence
	unsent  int64 // bytes in runs
	runs    []run
	chunks  []chunk          // the newest sent, at most keptChunks
	used    []process.Stream // those that the command has
	streams [process.NumStreams]streamState
	first   time.Time // when the oldest unsent byte came
	last    time.Time // when the newest byte came
	moved   time.Time // when something was sent last, or the first byte waited
	ended   bool
	broken  bool
	size    process.Size // of the terminal now
}

type streamState struct {
	bytes int64
	hash  hash.Hash
}

func newSpool(r ring, used []process.Stream, logger *slog.Logger) *spool {
	s := &spool{
		used:   used,
		logger: logger, wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		ring: r,
	}
	for i := range s.streams {
		s.streams[i].hash = sha256.New()
	}
	return s
}

// write takes output. It blocks while much waits and sending moves on.
func (s *spool) write(stream process.Stream, b []byte) {
	s.awaitRoom()
	s.mu.Lock()
	s.add(stream, b)
	s.mu.Unlock()
	signal(s.wake)
}

// resize notes the size of the terminal for the output that comes from now on.
func (s *spool) resize(to process.Size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = to
}

func (s *spool) awaitRoom() {
	for {
		s.mu.Lock()
		patience := stalled - time.Since(s.moved)
		full := s.unsent >= min(crowded, s.ring.size/2) && patience > 0
		s.mu.Unlock()
		if !full {
			return
		}
		t := time.NewTimer(patience)
		select {
		case <-s.room:
		case <-t.C:
		}
		t.Stop()
	}
}

// add needs mu held.
func (s *spool) add(stream process.Stream, b []byte) {
	st := &s.streams[stream]
	st.hash.Write(b)
	now := time.Now()
	r := run{stream: stream, pos: s.tail, offset: st.bytes, length: int64(len(b)), at: now, size: s.size}
	st.bytes += r.length
	if err := s.ring.writeAt(b, s.tail); err != nil {
		// What cannot be kept is a gap; the command itself is not to suffer for it.
		if !s.broken {
			s.logger.Error("output is not kept", "error", err)
		}
		s.broken = true
		return
	}
	if len(s.runs) == 0 {
		s.first, s.moved = now, now
	}
	s.last = now
	s.tail += r.length
	s.unsent += r.length
	s.append(r)
	s.evict()
}

// append joins a run to the one before where they are contiguous.
func (s *spool) append(r run) {
	if n := len(s.runs); n > 0 {
		before := &s.runs[n-1]
		if before.stream == r.stream && before.pos+before.length == r.pos && before.offset+before.length == r.offset &&
			before.size == r.size {
			before.length += r.length
			return
		}
	}
	s.runs = append(s.runs, r)
}

// evict gives up the oldest unsent output that the ring no longer holds.
func (s *spool) evict() {
	head := s.tail - s.ring.size
	for len(s.runs) > 0 && (s.runs[0].pos < head || len(s.runs) > maxRuns) {
		r := &s.runs[0]
		gone := min(head-r.pos, r.length)
		if len(s.runs) > maxRuns {
			gone = r.length
		}
		r.pos, r.offset, r.length = r.pos+gone, r.offset+gone, r.length-gone
		s.unsent -= gone
		if r.length == 0 {
			s.runs = s.runs[1:]
		}
	}
}

// end says that no more output comes.
func (s *spool) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	signal(s.wake)
}

// next cuts the next chunk and reads it into buf, which holds events.MaxChunk bytes. ok
// is false when nothing waits.
func (s *spool) next(buf []byte) (c chunk, data []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.runs) > 0 {
		r := &s.runs[0]
		c = chunk{run: *r, number: s.count() + 1}
		c.length = min(r.length, events.MaxChunk)
		r.pos, r.offset, r.length = r.pos+c.length, r.offset+c.length, r.length-c.length
		if r.length == 0 {
			s.runs = s.runs[1:]
		}
		s.unsent -= c.length
		s.moved = time.Now()
		s.first = s.moved
		signal(s.room)
		data = buf[:c.length]
		if err := s.ring.readAt(data, c.pos); err != nil {
			s.logger.Error("output is not kept", "error", err)
			continue
		}
		s.keep(c)
		return c, data, true
	}
	return chunk{}, nil, false
}

// count returns the number of the newest chunk. It needs mu held.
func (s *spool) count() uint64 {
	if len(s.chunks) == 0 {
		return 0
	}
	return s.chunks[len(s.chunks)-1].number
}

func (s *spool) keep(c chunk) {
	if len(s.chunks) == 2*keptChunks {
		s.chunks = append(s.chunks[:0], s.chunks[keptChunks:]...)
	}
	s.chunks = append(s.chunks, c)
}

// window returns the chunks that the bus should have: the newest keptChunks.
func (s *spool) window() []chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]chunk(nil), s.chunks[max(0, len(s.chunks)-keptChunks):]...)
}

// read reads a chunk sent before; ok is false when the ring no longer holds it.
func (s *spool) read(c chunk, buf []byte) (data []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.pos < s.tail-s.ring.size {
		return nil, false
	}
	data = buf[:c.length]
	if err := s.ring.readAt(data, c.pos); err != nil {
		s.logger.Error("output is not kept", "error", err)
		return nil, false
	}
	return data, true
}

// summary says what was written, and how much of it is not among the kept chunks.
func (s *spool) summary(kept []chunk) []events.StreamSummary {
	s.mu.Lock()
	defer s.mu.Unlock()
	var have [process.NumStreams]int64
	for _, c := range kept {
		have[c.stream] += c.length
	}
	var out []events.StreamSummary
	for _, stream := range s.used {
		st := s.streams[stream]
		out = append(out, events.StreamSummary{
			Name: stream.String(), Bytes: st.bytes, SHA256: hex.EncodeToString(st.hash.Sum(nil)),
			MissingBytes: st.bytes - have[stream],
		})
	}
	return out
}

func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.close()
}

// signal wakes whoever waits on c, now or next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
