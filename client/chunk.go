package client

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Chunk is a piece of an exec's output.
type Chunk struct {
	// Number counts the chunks of all streams, from 1, in the order in which the
	// executor read them. It is 0 in a last chunk without data that says what is missing
	// at the end of its stream.
	Number uint64
	Stream string // stdout, stderr or pty
	Offset int64  // in its stream, of Data's first byte
	Data   []byte
	// Time is when the first of Data was read, by the executor's clock; zero if it did
	// not say.
	Time time.Time
	// Rows and Cols are the size of the terminal when the first of Data was read; zero if
	// there is none.
	Rows, Cols int
	// Missing is how many bytes of this stream before Offset were lost or not kept.
	Missing int64
}

func chunkOf(m *nats.Msg) (Chunk, error) {
	n, nerr := strconv.ParseUint(m.Header.Get(events.HeaderChunk), 10, 64)
	offset, oerr := strconv.ParseInt(m.Header.Get(events.HeaderOffset), 10, 64)
	if nerr != nil || oerr != nil || n == 0 || offset < 0 {
		return Chunk{}, events.Errorf(events.CodeUndecodable, "an output chunk without number or offset on %s", m.Subject)
	}
	c := Chunk{Number: n, Stream: m.Header.Get(events.HeaderStream), Offset: offset, Data: m.Data}
	if us, err := strconv.ParseInt(m.Header.Get(events.HeaderTime), 10, 64); err == nil {
		c.Time = time.UnixMicro(us)
	}
	c.Rows, c.Cols = sizeIn(m.Header.Get(events.HeaderSize))
	return c, nil
}

// sizeIn reads ROWSxCOLS; anything else is no size.
func sizeIn(s string) (rows, cols int) {
	r, c, _ := strings.Cut(s, "x")
	rows, rerr := strconv.Atoi(r)
	cols, cerr := strconv.Atoi(c)
	if rerr != nil || cerr != nil || rows < 1 || cols < 1 || rows > events.MaxPTYSize || cols > events.MaxPTYSize {
		return 0, 0
	}
	return rows, cols
}

// Chunks kept that came before their turn. Beyond, what is missing is given up: it is
// further behind than the bus keeps.
const (
	aheadChunks = 1024
	aheadBytes  = 16 << 20
)

// reel hands out chunks by their number, each once, as they come with losses, repeats
// and overlaps.
type reel struct {
	fn    func(Chunk)
	next  uint64 // the number to hand out next
	ahead map[uint64]Chunk
	bytes int
	seen  map[string]int64 // how far each stream was handed out
}

func newReel(fn func(Chunk)) *reel {
	return &reel{fn: fn, next: 1, ahead: make(map[uint64]Chunk), seen: make(map[string]int64)}
}

// take hands out a chunk and those that waited for it, or keeps it for its turn.
func (r *reel) take(c Chunk) {
	if _, known := r.ahead[c.Number]; known || c.Number < r.next {
		return
	}
	r.ahead[c.Number] = c
	r.bytes += len(c.Data)
	r.roll()
	for len(r.ahead) > aheadChunks || r.bytes > aheadBytes {
		r.skip()
	}
}

func (r *reel) roll() {
	for {
		c, ok := r.ahead[r.next]
		if !ok {
			return
		}
		delete(r.ahead, r.next)
		r.bytes -= len(c.Data)
		r.next++
		c.Missing = max(c.Offset-r.seen[c.Stream], 0)
		r.seen[c.Stream] = c.Offset + int64(len(c.Data))
		r.fn(c)
	}
}

// waits reports whether a chunk is missing that others wait for.
func (r *reel) waits() bool { return len(r.ahead) > 0 }

// skip gives up what is missing before the lowest chunk that waits.
func (r *reel) skip() {
	if r.waits() {
		r.next = slices.Min(slices.Collect(maps.Keys(r.ahead)))
		r.roll()
	}
}

// whole reports whether all bytes were handed out.
func (r *reel) whole(sums []events.StreamSummary) bool {
	return !r.waits() && !slices.ContainsFunc(sums, func(s events.StreamSummary) bool { return r.seen[s.Name] < s.Bytes })
}

// finish gives up all that is missing and says what.
func (r *reel) finish(sums []events.StreamSummary) {
	for r.waits() {
		r.skip()
	}
	sums = slices.SortedFunc(slices.Values(sums), func(a, b events.StreamSummary) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range sums {
		if lost := s.Bytes - r.seen[s.Name]; lost > 0 {
			r.seen[s.Name] = s.Bytes
			r.fn(Chunk{Stream: s.Name, Offset: s.Bytes, Missing: lost})
		}
	}
}
