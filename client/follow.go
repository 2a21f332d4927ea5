package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client/follow"
	"keryx/events"
)

// tipsEvery is how often a follower asks whether it missed a last event, which no
// later one would show (design section 3).
const tipsEvery = 15 * time.Second

// followMessages and followBytes are how much may wait live for the reader of a
// follower. What is beyond is read again from the log.
const (
	followMessages = 8192
	followBytes    = 16 << 20
	// followSubjects is how many scopes are subscribed to one by one; for more the
	// whole profile is heard and the others are left out.
	followSubjects = 64
)

// FollowConfig says what to follow. The zero value is the whole profile from the
// beginning.
type FollowConfig struct {
	// Scopes to follow; none means every scope of the profile, later ones included.
	Scopes []events.Scope
	// From is the first sequence wanted; 0 is the beginning.
	From events.Sequence
	// FromTip leaves out what is there already when the bus answers first.
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
// ctx ends or the caller stops; it survives reconnects and restarts of the bus. With an
// error it yields a record only for *[HoleError]; after that and after
// *[follow.GapError] it goes on, after any other it ends. A slow reader holds up nobody:
// what it cannot take live it is given from the log.
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
	live := newInbox(followMessages, followBytes)
	stop, err := f.conn.listen(live, f.subjects(live)...)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	defer stop()
	tick := time.NewTicker(tipsEvery)
	defer tick.Stop()
	for {
		lost := f.conn.again.next() // before the tips, so that none is missed
		if err := f.catchUp(ctx); err != nil {
			return err
		}
		if err := f.pump(ctx, live, tick.C, lost); err != nil {
			return err
		}
	}
}

func (f *follower) subjects(live *inbox) []string {
	p := f.conn.Principal().Profile
	switch n := len(f.cfg.Scopes); {
	case n == 0:
		return []string{events.LiveAll(p)}
	case n > followSubjects:
		live.wanted = wantedScopes(f.cfg.Scopes)
		return []string{events.LiveAll(p)}
	}
	var out []string
	for _, s := range f.cfg.Scopes {
		if subject := events.LiveSubject(p, s); !slices.Contains(out, subject) {
			out = append(out, subject)
		}
	}
	return out
}

func wantedScopes(scopes []events.Scope) func(*nats.Msg) bool {
	set := make(map[events.Scope]struct{}, len(scopes))
	for _, s := range scopes {
		set[s] = struct{}{}
	}
	return func(m *nats.Msg) bool {
		_, scope, err := events.ParseLogSubject(m.Subject)
		_, ok := set[scope]
		return err == nil && ok
	}
}

// pump hands out live events until it is time to ask for the tips.
func (f *follower) pump(ctx context.Context, live *inbox, tick <-chan time.Time, lost <-chan struct{}) error {
	for {
		select {
		case <-live.ready:
			got, missed, err := live.take()
			if err != nil {
				return fmt.Errorf("follow: %w", err)
			}
			for _, m := range got {
				if err := f.live(ctx, m); err != nil {
					return err
				}
			}
			if missed {
				return nil
			}
		case <-tick:
			return nil
		case <-lost:
			if f.conn.nc.IsClosed() {
				return fmt.Errorf("follow: %w", f.conn.sendError(nats.ErrConnectionClosed))
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
	seq, err := strconv.ParseUint(m.Header.Get(nats.JSSequence), 10, 64)
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
		if f.listed || f.cfg.FromTip {
			from = 0
		}
		cur = follow.New(scope, from)
		f.cursors[scope] = cur
	}
	return cur
}

// catchUp asks for the tips and fetches what is missing.
func (f *follower) catchUp(ctx context.Context) error {
	tips, err := patiently(ctx, func() ([]events.Tip, error) { return f.conn.Tips(ctx, f.cfg.Scopes...) })
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

// patiently asks again what had no answer in time, until ctx ends: followers outlive
// restarts of the bus.
func patiently[A any](ctx context.Context, ask func() (A, error)) (A, error) {
	for {
		a, err := ask()
		if err == nil || ctx.Err() != nil || !errors.Is(err, events.ErrOf(events.CodeTimeout)) {
			return a, err
		}
	}
}

// fetch reads pages until the cursor is no longer behind.
func (f *follower) fetch(ctx context.Context, scope events.Scope, cur *follow.Cursor) error {
	for {
		page, err := patiently(ctx, func() (Page, error) { return f.conn.pageOfKnown(ctx, scope, cur.Next()) })
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
		full, _ := path.Match(g, string(t)) // the error means that nothing matches
		short, _ := path.Match(g, t.Short())
		if full || short {
			return true
		}
	}
	return false
}
