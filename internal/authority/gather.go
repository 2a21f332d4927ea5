package authority

import (
	"context"
	"errors"
	"sync"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// Bounds of gathering. The server stages a batch in files of its own, which takes 5 ms
// whatever its size, as long as 60 appends (measured on 2.15.3): fewer are not worth it.
// A batch has at most the 1,000 messages that the server takes; the bytes bound its
// memory.
const (
	gatherFrom     = 96
	gatherMessages = 1000
	gatherBytes    = 8 << 20
	// singlesAtOnce keep the server busy, which writes one after the other; what comes
	// beyond them waits here, so that it can be seen how many there are.
	singlesAtOnce = 16
)

// appender is what a gatherer writes to; *[sessionlog.Log] is one.
type appender interface {
	Append(context.Context, sessionlog.Message) (events.Sequence, error)
	AppendBatch(context.Context, []sessionlog.Message) ([]events.Sequence, error)
}

// gatherer appends what lanes commit. While few commits are in flight each goes by
// itself; what waits beyond that goes as one atomic batch, so that one sync serves
// many. A batch that is refused, because one of its members expected an old sequence,
// stores nothing, and its members are appended singly. It is safe for concurrent use.
type gatherer struct {
	log   appender
	work  context.Context   // of the term
	start func(func()) bool // runs a goroutine; false when the term is over

	mu      sync.Mutex
	singles int       // in flight
	batch   bool      // one is in flight
	waiting []*commit // in order of arrival; not empty only while something is in flight
}

// commit is what one lane appends, all or none.
type commit struct {
	messages  []sessionlog.Message
	done      chan struct{} // closed when the rest is set
	alone     bool          // to be appended by its own lane, which is counted
	refused   bool          // was in a batch that was refused: not to be in another
	sequences []events.Sequence
	err       error
}

func newGatherer(work context.Context, log appender, start func(func()) bool) *gatherer {
	return &gatherer{log: log, work: work, start: start}
}

// append appends the messages of one commit and returns their sequences. Its errors are
// those of [sessionlog.Log.Append].
func (g *gatherer) append(ctx context.Context, ms []sessionlog.Message) ([]events.Sequence, error) {
	c := g.enter(ms)
	if c != nil {
		<-c.done
		if !c.alone {
			return c.sequences, c.err
		}
	}
	defer g.leave()
	return g.single(ctx, ms)
}

func (g *gatherer) single(ctx context.Context, ms []sessionlog.Message) ([]events.Sequence, error) {
	if len(ms) > 1 {
		return g.log.AppendBatch(ctx, ms)
	}
	seq, err := g.log.Append(ctx, ms[0])
	if err != nil {
		return nil, err
	}
	return []events.Sequence{seq}, nil
}

// enter counts a commit that may go alone at once, and returns nil, or makes it wait.
func (g *gatherer) enter(ms []sessionlog.Message) *commit {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.singles < singlesAtOnce && !g.batch && len(g.waiting) == 0 {
		g.singles++
		return nil
	}
	c := &commit{messages: ms, done: make(chan struct{})}
	g.waiting = append(g.waiting, c)
	return c
}

func (g *gatherer) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.singles--
	g.next()
}

// next lets go what waits: together if there is enough, else one by one. Those of a
// refused batch are at the head, and go one by one too: the server takes 50 batches at
// once, and what one lane appends may be a batch of its own.
func (g *gatherer) next() {
	if g.batch {
		return
	}
	few := len(g.waiting) < gatherFrom
	for len(g.waiting) > 0 && g.singles < singlesAtOnce && (few || g.waiting[0].refused) {
		g.alone(g.waiting[0])
		g.waiting = g.waiting[1:]
	}
	if len(g.waiting) < gatherFrom || g.waiting[0].refused {
		return
	}
	members := g.gather()
	if g.batch = g.start(func() { g.commit(members) }); g.batch {
		return
	}
	for _, c := range append(members, g.waiting...) { // the term is over: each sees so by itself
		g.alone(c)
	}
	g.waiting = nil
}

// alone lets the lane of c append it. Callers hold mu.
func (g *gatherer) alone(c *commit) {
	g.singles++
	c.alone = true
	close(c.done)
}

// gather takes what fits into one batch, from the head of what waits.
func (g *gatherer) gather() []*commit {
	messages, bytes, n := 0, 0, 0
	for _, c := range g.waiting {
		messages += len(c.messages)
		for _, m := range c.messages {
			bytes += len(m.Data)
		}
		if n > 0 && (messages > gatherMessages || bytes > gatherBytes) {
			break
		}
		n++
	}
	members := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return members
}

// commit appends a batch and tells its members.
func (g *gatherer) commit(members []*commit) {
	var all []sessionlog.Message
	for _, c := range members {
		all = append(all, c.messages...)
	}
	sequences, err := g.log.AppendBatch(g.work, all)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.batch = false
	if err != nil && !errors.Is(err, sessionlog.ErrUnknownResult) {
		for _, c := range members {
			c.refused = true
		}
		g.waiting = append(members, g.waiting...)
		g.next()
		return
	}
	for _, c := range members {
		if c.err = err; err == nil {
			c.sequences, sequences = sequences[:len(c.messages)], sequences[len(c.messages):]
		}
		close(c.done)
	}
	g.next()
}
