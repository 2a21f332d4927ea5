package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client/follow"
	"keryx/events"
)

// tipsEvery is how often a follower asks whether it missed a last event, which no
// later one would show (design section 3).
const tipsEvery = 15 * time.Second

// followBuffer is how many live messages may wait for the reader of a follower. More
// are dropped and read again from the log.
const followBuffer = 8192

// FollowConfig says what to follow. The zero value is the whole profile from the
// beginning.
type FollowConfig struct {
	// Scopes to follow; none means every scope of the profile, later ones included.
	Scopes []events.Scope
	// From is the first sequence wanted; 0 is the beginning.
	From events.Sequence
	// FromTip leaves out what is there already.
	FromTip bool
	// Types keeps only types that match one of these globs, in full
	// (keryx.turn.started.v1) or short (turn.*).
	Types []string
}

// HoleError says that a record could not be decoded. The follower goes on behind it.
type HoleError struct {
	Scope    events.Scope
	Sequence events.Sequence
	Err      error
}

// Error implements error.
func (e *HoleError) Error() string {
	return fmt.Sprintf("scope %s: the record at sequence %d cannot be decoded: %v", e.Scope, e.Sequence, e.Err)
}

// Unwrap returns what was wrong.
func (e *HoleError) Unwrap() error { return e.Err }

// Follow yields events, those of a scope each once and in order, and goes on live until
// ctx ends or the caller stops; it survives reconnects and restarts of the bus. With
// an error it yields a record only for *[HoleError]; after that and after
// *[follow.GapError] it goes on, after any other it ends.
func (c *Conn) Follow(ctx context.Context, cfg FollowConfig) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		f := &follower{conn: c, cfg: cfg, yield: yield, cursors: make(map[events.Scope]*follow.Cursor)}
		if err := f.run(ctx); err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
			yield(events.Record{}, err)
		}
	}
}

// errEnough means that the reader of a follower has stopped.
var errEnough = errors.New("the reader stopped")

type follower struct {
	conn    *Conn
	cfg     FollowConfig
	yield   func(events.Record, error) bool
	cursors map[events.Scope]*follow.Cursor
	listed  bool // the scopes that were there at the beginning are known
}

func (f *follower) run(ctx context.Context) error {
	live := make(chan *nats.Msg, followBuffer)
	subs, err := f.subscribe(live)
	defer func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // fails only once the connection is gone
		}
	}()
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	tick := time.NewTicker(tipsEvery)
	defer tick.Stop()
	for {
		woken := f.conn.waiters.next() // before the tips, so that none is missed
		if err := f.catchUp(ctx); err != nil {
			return err
		}
		if err := f.pump(ctx, live, tick.C, woken); err != nil {
			return err
		}
	}
}

func (f *follower) subscribe(live chan *nats.Msg) ([]*nats.Subscription, error) {
	p := f.conn.Principal().Profile
	subjects := []string{events.LiveAll(p)}
	if len(f.cfg.Scopes) > 0 {
		subjects = nil
		for _, s := range f.cfg.Scopes {
			subjects = append(subjects, events.LiveSubject(p, s))
		}
	}
	var subs []*nats.Subscription
	for _, subject := range subjects {
		s, err := f.conn.nc.ChanSubscribe(subject, live)
		if err != nil {
			return subs, err
		}
		subs = append(subs, s)
	}
	return subs, nil
}

// pump hands out live events until it is time to ask for the tips.
func (f *follower) pump(ctx context.Context, live <-chan *nats.Msg, tick <-chan time.Time, woken <-chan struct{}) error {
	for {
		select {
		case m := <-live:
			if err := f.live(ctx, m); err != nil {
				return err
			}
		case <-tick:
			return nil
		case <-woken:
			if f.conn.nc.IsClosed() {
				return fmt.Errorf("follow: %w", nats.ErrConnectionClosed)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *follower) live(ctx context.Context, m *nats.Msg) error {
	_, scope, err := events.ParseLogSubject(m.Subject)
	if err != nil {
		return nil // not of the log
	}
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return nil // not republished by the server
	}
	rec, err := events.DecodeRecord(m.Subject, events.Sequence(seq), m.Header, m.Data)
	cur := f.cursor(scope)
	if err != nil { // read it, with its neighbours, from the log
		cur.Tip(events.Tip{Scope: scope, Sequence: rec.Sequence, Ordinal: max(rec.Ordinal, cur.Last().Ordinal+1)})
	} else if err := f.hand(cur.Live(rec), nil); err != nil {
		return err
	}
	if cur.Behind() {
		return f.fetch(ctx, scope, cur)
	}
	return nil
}

// cursor returns a scope's cursor. One that appears after the beginning is new, so its
// first event is wanted.
func (f *follower) cursor(scope events.Scope) *follow.Cursor {
	cur, ok := f.cursors[scope]
	if !ok {
		from := f.cfg.From
		if f.cfg.FromTip {
			from = 0
		}
		cur = follow.New(scope, from)
		f.cursors[scope] = cur
	}
	return cur
}

// catchUp asks for the tips and fetches what is missing.
func (f *follower) catchUp(ctx context.Context) error {
	tips, err := f.tips(ctx)
	if err != nil {
		return err
	}
	for _, tip := range tips {
		if f.cfg.FromTip && !f.listed {
			f.cursors[tip.Scope] = follow.At(tip)
			continue
		}
		cur := f.cursor(tip.Scope)
		cur.Tip(tip)
		if cur.Behind() {
			if err := f.fetch(ctx, tip.Scope, cur); err != nil {
				return err
			}
		}
	}
	f.listed = true
	return nil
}

// tips asks until the bus answers: a follower outlives its restarts.
func (f *follower) tips(ctx context.Context) ([]events.Tip, error) {
	for {
		tips, err := f.conn.Tips(ctx, f.cfg.Scopes...)
		if !f.patient(ctx, err) {
			return tips, err
		}
	}
}

func (f *follower) patient(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && errors.Is(err, events.ErrOf(events.CodeTimeout))
}

// fetch reads pages until the cursor is no longer behind.
func (f *follower) fetch(ctx context.Context, scope events.Scope, cur *follow.Cursor) error {
	for {
		page, err := f.conn.Page(ctx, scope, cur.Next(), 0)
		if f.patient(ctx, err) {
			continue
		}
		if err != nil {
			return err
		}
		atTip := page.Next == 0
		var end events.Tip
		if atTip {
			end = page.Tip
		}
		out, gap := cur.Page(page.Records, end)
		if gap != nil && !f.yield(events.Record{}, gap) {
			return errEnough
		}
		if err := f.hand(out, page.Holes); err != nil {
			return err
		}
		if progress := gap != nil || len(out) > 0; atTip && (!progress || !cur.Behind()) {
			return nil
		}
	}
}

func (f *follower) hand(rs []events.Record, holes map[events.Sequence]error) error {
	for _, r := range rs {
		if hole, ok := holes[r.Sequence]; ok {
			if !f.yield(r, &HoleError{Scope: r.Scope, Sequence: r.Sequence, Err: hole}) {
				return errEnough
			}
			continue
		}
		if MatchType(f.cfg.Types, r.Type) && !f.yield(r, nil) {
			return errEnough
		}
	}
	return nil
}

// MatchType reports whether a type matches one of the globs, in full or short form. No
// globs match everything; a malformed glob matches nothing.
func MatchType(globs []string, t events.Type) bool {
	if len(globs) == 0 {
		return true
	}
	for _, g := range globs {
		full, _ := path.Match(g, string(t))
		short, _ := path.Match(g, t.Short())
		if full || short {
			return true
		}
	}
	return false
}

// WaitReceipt waits until an item's receipt is as wanted, and returns it.
func (c *Conn) WaitReceipt(ctx context.Context, id events.ReceiptID, until func(events.Receipt) bool) (events.Receipt, error) {
	r, err := c.Receipt(ctx, id)
	if err != nil || until(r) {
		return r, err
	}
	cfg := FollowConfig{Scopes: []events.Scope{r.Session.Scope()}, From: r.Sequence, Types: []string{"turn.*", "continuation.*", "session.finalized", "session.reset"}}
	for rec, err := range c.Follow(ctx, cfg) {
		if err != nil && !isPassing(err) {
			return r, err
		}
		if rec.Sequence < r.Sequence {
			continue
		}
		if r, err = c.Receipt(ctx, id); err != nil || until(r) {
			return r, err
		}
	}
	return r, context.Cause(ctx)
}

func isPassing(err error) bool {
	var hole *HoleError
	var gap *follow.GapError
	return errors.As(err, &hole) || errors.As(err, &gap)
}
