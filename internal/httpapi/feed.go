package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
)

// entry is one event of a scope as it is streamed, made once for all readers.
type entry struct {
	seq   events.Sequence
	typ   events.Type
	frame []byte
}

// feed follows one scope for all its readers and keeps its newest events.
type feed struct {
	scope   events.Scope
	readers int // guarded by feeds.mu
	stop    context.CancelFunc
	news    notice

	maxEvents, maxBytes int

	mu      sync.Mutex
	entries []entry // in order of sequence
	bytes   int
	// floor is the sequence up to which nothing is kept here, but all in the log.
	floor events.Sequence
	// begun is set once floor is known.
	begun bool
	err   error // why the feed has ended
}

// newest bounds one step of a reader.
const newest = 64

// after returns what is kept behind a sequence, a step of it, and the floor. begun is
// false as long as nobody knows what is kept; err is why there will be no more.
func (f *feed) after(seq events.Sequence) (got []entry, floor events.Sequence, begun bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, _ := slices.BinarySearchFunc(f.entries, seq+1, func(e entry, s events.Sequence) int {
		if e.seq < s {
			return -1
		}
		return 1
	})
	rest := f.entries[i:]
	if len(rest) == 0 {
		return nil, f.floor, f.begun, f.err
	}
	return slices.Clone(rest[:min(len(rest), newest)]), f.floor, f.begun, nil
}

func (f *feed) put(e entry) {
	f.mu.Lock()
	f.entries = append(f.entries, e)
	f.bytes += len(e.frame)
	drop := 0
	for len(f.entries)-drop > 1 && (len(f.entries)-drop > f.maxEvents || f.bytes > f.maxBytes) {
		f.bytes -= len(f.entries[drop].frame)
		f.floor = f.entries[drop].seq
		drop++
	}
	if drop > 0 {
		f.entries = append([]entry(nil), f.entries[drop:]...)
	}
	f.mu.Unlock()
	f.news.fire()
}

func (f *feed) begin(floor events.Sequence) {
	f.mu.Lock()
	f.floor, f.begun = floor, true
	f.mu.Unlock()
	f.news.fire()
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	f.news.fire()
}

// follow runs until ctx ends. What is in the log at the beginning is left to the readers.
func (f *feed) follow(ctx context.Context, conn *client.Conn) error {
	tips, err := conn.Tips(ctx, f.scope)
	for errors.Is(err, events.ErrOf(events.CodeTimeout)) && ctx.Err() == nil {
		tips, err = conn.Tips(ctx, f.scope) // streams outlive restarts of the bus
	}
	if err != nil {
		return fmt.Errorf("ask for the tip of %s: %w", f.scope, err)
	}
	var tip events.Sequence
	for _, t := range tips {
		tip = t.Sequence
	}
	f.begin(tip)
	last := tip
	for rec, err := range conn.Follow(ctx, client.FollowConfig{Scopes: []events.Scope{f.scope}, From: tip + 1}) {
		var gap *follow.GapError
		var hole *client.HoleError
		switch {
		case err == nil:
			last = rec.Sequence
			f.put(entryOf(rec))
		case errors.As(err, &gap):
			f.put(entry{seq: last + 1, frame: gapFrame(last+1, gapNotice{FromOrdinal: gap.From, ToOrdinal: gap.To, Reason: reasonCut})})
			last++
		case errors.As(err, &hole):
			last = hole.Sequence
			f.put(entry{seq: last, frame: gapFrame(last, gapNotice{From: last, To: last, Reason: reasonUndecodable})})
		default:
			return fmt.Errorf("follow %s: %w", f.scope, err)
		}
	}
	return fmt.Errorf("follow %s: %w", f.scope, context.Cause(ctx))
}

// feeds are the scopes that have readers.
type feeds struct {
	conn *client.Conn
	cfg  Config
	life context.Context
	work sync.WaitGroup

	mu   sync.Mutex
	open map[events.Scope]*feed
}

func newFeeds(life context.Context, cfg Config) *feeds {
	return &feeds{conn: cfg.Conns[events.RoleGateway], cfg: cfg, life: life, open: make(map[events.Scope]*feed)}
}

// acquire returns the feed of a scope and begins it for its first reader. The reader
// calls release.
func (fs *feeds) acquire(scope events.Scope) (f *feed, release func(), err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.life.Err() != nil {
		return nil, nil, errStopping
	}
	f = fs.open[scope]
	if f == nil {
		f = &feed{scope: scope, maxEvents: fs.cfg.BufferEvents, maxBytes: fs.cfg.BufferBytes}
		var ctx context.Context
		ctx, f.stop = context.WithCancel(fs.life)
		fs.open[scope] = f
		fs.work.Go(func() { fs.run(ctx, f) })
	}
	f.readers++
	return f, func() { fs.release(f) }, nil
}

func (fs *feeds) run(ctx context.Context, f *feed) {
	err := f.follow(ctx, fs.conn)
	fs.mu.Lock()
	if fs.open[f.scope] == f { // the next reader begins another
		delete(fs.open, f.scope)
	}
	fs.mu.Unlock()
	if ctx.Err() != nil {
		err = errStopping
	} else {
		fs.cfg.Logger.Warn("a stream's source has ended", "scope", f.scope, "error", err)
	}
	f.fail(err)
}

func (fs *feeds) release(f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.readers--
	if f.readers == 0 {
		f.stop()
		if fs.open[f.scope] == f {
			delete(fs.open, f.scope)
		}
	}
}

// wait returns when all feeds have ended, after their context.
func (fs *feeds) wait() { fs.work.Wait() }
