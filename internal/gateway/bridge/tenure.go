package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
	"keryx/internal/gateway/platform"
)

// Times of a tenure.
const (
	// surveyEvery is how often it is looked at how far everything is done.
	surveyEvery = 5 * time.Second
	// againMin and againMax bound the pause before a platform is served again.
	againMin = 500 * time.Millisecond
	againMax = time.Minute
)

// errLost is why a tenure ends whose lease is gone.
var errLost = errors.New("the account's lease is lost")

// tenure is one time of holding an account's lease.
type tenure struct {
	cfg     Config
	held    *client.Held
	origins origins
	cancel  context.CancelCauseFunc

	courier *courier

	mu sync.Mutex
	// guarded by mu
	book     *book
	seen     map[events.Scope]events.Sequence // what was taken in last
	news     bool                             // something was since the last survey
	surveyed events.Sequence                  // everything up to it was taken in
	next     events.Sequence                  // so is this, if the next survey finds no hole
	homes    map[events.SessionID]home
	known    map[events.GatewaySessionKey]events.SessionID
	cursor   string
}

// home is the place of a session's own key, if it is one of the account.
type home struct {
	place events.Place
	ok    bool
}

func newTenure(cfg Config, held *client.Held) *tenure {
	from := origins{kind: cfg.Platform.Kind(), account: cfg.Name}
	return &tenure{
		cfg: cfg, held: held, origins: from, book: newBook(from, cfg.Conn.Principal().Name),
		seen: make(map[events.Scope]events.Sequence), homes: make(map[events.SessionID]home),
		known: make(map[events.GatewaySessionKey]events.SessionID),
	}
}

// run serves until ctx has ended or the lease is lost. All it started has ended when it
// returns.
func (t *tenure) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	t.cancel = cancel
	defer cancel(nil)
	var work sync.WaitGroup
	lost := t.held.Lost()
	work.Go(func() {
		select {
		case <-lost:
			cancel(errLost)
		case <-ctx.Done():
		}
	})
	err := t.start(ctx)
	if err == nil {
		work.Go(func() { t.watch(ctx) })
		work.Go(func() { t.survey(ctx) })
		t.serve(ctx)
		err = context.Cause(ctx)
	}
	cancel(err)
	work.Wait()
	t.courier.work.Wait()
	return err
}

// start folds the account's record.
func (t *tenure) start(ctx context.Context) error {
	l := newLedger()
	t.courier = newCourier(ctx, t.cfg, l, outside{
		send: t.cfg.Platform.Send, traits: t.cfg.Platform.Traits, record: t.record, valid: t.held.Valid, through: t.through,
	})
	for from := events.Sequence(0); ; {
		page, err := t.cfg.Conn.Page(ctx, t.cfg.Name.Scope(), from, 0)
		if events.CodeOf(err) == events.CodeUnknownSession {
			break // nothing is on record yet
		}
		if err != nil {
			return fmt.Errorf("read the account's record: %w", err)
		}
		for _, rec := range page.Records {
			if err := l.fold(rec); err != nil {
				t.cfg.Logger.Error("event cannot be folded", "ordinal", rec.Ordinal, "error", err)
			}
		}
		if from = page.Next; from == 0 {
			break
		}
	}
	t.surveyed, t.next, t.cursor = l.through, l.through, l.cursor
	return nil
}

// record puts a fact on the account's record, however often the bus goes away.
func (t *tenure) record(ctx context.Context, r events.RecordGateway) error {
	r.Account, r.Instance, r.Fence = t.cfg.Name, t.cfg.Conn.Instance(), t.held.Fence()
	for {
		err := t.cfg.Conn.Do(ctx, events.CmdGatewayRecord, r, nil)
		switch info, _ := events.Lookup(events.CodeOf(err)); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !info.Retryable:
			t.cancel(fmt.Errorf("record: %w", err))
			return err
		}
	}
}

// serve lets the platform take messages in, again and again.
func (t *tenure) serve(ctx context.Context) {
	pause := againMin
	for ctx.Err() == nil {
		began := time.Now()
		err := t.cfg.Platform.Serve(ctx, &inbox{tenure: t})
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > againMax {
			pause = againMin
		}
		t.cfg.Logger.Warn("the platform's connection ended; it is made again", "in", pause, "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, againMax)
	}
}

// watch follows the profile and has said what its events ask for.
func (t *tenure) watch(ctx context.Context) {
	for rec, err := range t.cfg.Conn.Follow(ctx, client.FollowConfig{From: t.surveyed + 1}) {
		var hole *client.HoleError
		var gap *follow.GapError
		switch {
		case err == nil, errors.As(err, &hole):
		case errors.As(err, &gap):
			t.cfg.Logger.Warn("the record is not whole", "error", err)
			continue
		default:
			t.cancel(fmt.Errorf("follow the profile: %w", err))
			return
		}
		if err := t.take(ctx, rec); err != nil {
			t.cancel(err)
			return
		}
	}
}

// take has said what one event asks for.
func (t *tenure) take(ctx context.Context, rec events.Record) error {
	t.mu.Lock()
	what, err := t.book.take(rec)
	if err != nil {
		t.cfg.Logger.Error("event cannot be read", "scope", rec.Scope, "ordinal", rec.Ordinal, "error", err)
	}
	t.mu.Unlock()
	for _, s := range what.sayings {
		if what.home {
			place, ok, err := t.home(ctx, s.session)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			s.place = place
		}
		t.courier.say(s) //nolint:contextcheck // the courier outlives who gives it something to say
	}
	t.mu.Lock() // after what it asks for is in the courier's book
	defer t.mu.Unlock()
	t.seen[rec.Scope] = rec.Sequence
	if _, own := rec.Scope.Account(); !own {
		t.news = true
	}
	return nil
}

// home is the place in which a session's first key says that it lives.
func (t *tenure) home(ctx context.Context, id events.SessionID) (events.Place, bool, error) {
	t.mu.Lock()
	h, known := t.homes[id]
	t.mu.Unlock()
	if known {
		return h.place, h.ok, nil
	}
	v, err := t.cfg.Conn.Show(ctx, string(id))
	switch info, _ := events.Lookup(events.CodeOf(err)); {
	case events.CodeOf(err) == events.CodeUnknownSession: // it was forgotten meanwhile
	case err != nil && info.Retryable && ctx.Err() == nil:
		return t.home(ctx, id)
	case err != nil:
		return events.Place{}, false, fmt.Errorf("show session %s: %w", id, err)
	}
	if len(v.Keys) > 0 {
		h.place, h.ok = t.origins.place(events.GatewaySessionKey(v.Keys[0]))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.homes[id] = h
	return h.place, h.ok, nil
}

// through is up to where in the log everything is done.
func (t *tenure) through() events.Sequence {
	first := t.courier.oldest()
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.surveyed
	for _, open := range []events.Sequence{first, t.book.oldest()} {
		if open != 0 {
			out = min(out, open-1)
		}
	}
	return out
}

// survey finds out, now and then, up to where everything was taken in: an event of one
// session may come long after a later one of another.
func (t *tenure) survey(ctx context.Context) {
	tick := time.NewTicker(surveyEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		t.mu.Lock()
		news := t.news || t.next > t.surveyed
		t.news = false
		t.mu.Unlock()
		if !news {
			continue
		}
		tips, err := t.cfg.Conn.Tips(ctx)
		if err != nil {
			t.mu.Lock()
			t.news = true
			t.mu.Unlock()
			continue
		}
		t.compare(tips)
	}
}

// compare takes the ends of all scopes. What was the highest of them a survey ago is on
// record everywhere by now.
func (t *tenure) compare(tips []events.Tip) {
	t.mu.Lock()
	defer t.mu.Unlock()
	highest := events.Sequence(0)
	for _, tip := range tips {
		highest = max(highest, tip.Sequence)
		if tip.Sequence > t.surveyed && t.seen[tip.Scope] < tip.Sequence {
			t.news = true
			return
		}
	}
	t.surveyed = max(t.surveyed, t.next)
	t.next = highest
}

var _ platform.Inbox = (*inbox)(nil)
