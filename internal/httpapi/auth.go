package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"keryx/client"
	"keryx/client/follow"
	"keryx/events"
	"keryx/internal/tokens"
)

// Bounds of looking for a token that is not known.
const (
	// confirmTime is how long a token that was added a moment ago is waited for.
	confirmTime = 2 * time.Second
	// confirmRate and confirmBurst are how often the bus is asked: who guesses is refused
	// without it.
	confirmRate, confirmBurst = 5, 20
)

// bearers knows the profile's tokens by following its record.
type bearers struct {
	conn    *client.Conn
	logger  *slog.Logger
	confirm *rate.Limiter
	news    notice // after each event of the profile

	mu    sync.Mutex
	state tokens.State
	at    events.Sequence // what was taken in last
	tip   events.Sequence // to be taken in before anybody is refused
	known bool            // tip was read
	cuts  map[events.TokenName]chan struct{}
}

func newBearers(c *client.Conn, logger *slog.Logger) *bearers {
	return &bearers{
		conn: c, logger: logger, confirm: rate.NewLimiter(confirmRate, confirmBurst),
		cuts: make(map[events.TokenName]chan struct{}),
	}
}

// run follows the profile until ctx ends; it returns nil then.
func (b *bearers) run(ctx context.Context) error {
	if err := b.findTip(ctx); err != nil {
		return ended(ctx, err)
	}
	for rec, err := range b.conn.Follow(ctx, client.FollowConfig{Scopes: []events.Scope{events.ScopeProfile}}) {
		var hole *client.HoleError
		var gap *follow.GapError
		switch {
		case err == nil:
		case errors.As(err, &hole), errors.As(err, &gap):
			b.logger.Warn("follow the profile", "error", err)
		default:
			return ended(ctx, fmt.Errorf("follow the profile: %w", err))
		}
		b.take(rec)
	}
	return ended(ctx, errors.New("the profile can no longer be followed"))
}

// ended returns nil if err is only that ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (b *bearers) findTip(ctx context.Context) error {
	for {
		tips, err := b.conn.Tips(ctx, events.ScopeProfile)
		if errors.Is(err, events.ErrOf(events.CodeTimeout)) && ctx.Err() == nil {
			continue // the bus is not there yet
		}
		if err != nil {
			return fmt.Errorf("ask for the profile's tip: %w", err)
		}
		b.mu.Lock()
		for _, t := range tips {
			b.tip = t.Sequence
		}
		b.known = true
		b.mu.Unlock()
		b.news.fire()
		return nil
	}
}

func (b *bearers) take(rec events.Record) {
	b.mu.Lock()
	defer b.news.fire()
	defer b.mu.Unlock()
	b.at = max(b.at, rec.Sequence)
	if err := b.state.Fold(rec); err != nil {
		b.logger.Error("event cannot be folded", "sequence", rec.Sequence, "error", err)
	}
	if rec.Type != events.TypeTokenRevoked {
		return
	}
	if d, err := events.DataOf[events.TokenRevoked](rec); err == nil && b.cuts[d.Name] != nil {
		close(b.cuts[d.Name])
		delete(b.cuts, d.Name)
	}
}

// ready returns nil once every token that there was at the start is known.
func (b *bearers) ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known || b.at < b.tip {
		return events.Errorf(events.CodeUnavailable, "the edge has not read the profile's tokens yet")
	}
	return nil
}

// of returns the usable token that a request bears.
func (b *bearers) of(r *http.Request) (tokens.Token, error) {
	if err := b.ready(); err != nil {
		return tokens.Token{}, err
	}
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return tokens.Token{}, events.Errorf(events.CodeUnauthenticated, "send the header 'Authorization: Bearer SECRET' with a secret of 'bus token add'")
	}
	digest := tokens.Digest(strings.TrimSpace(secret))
	tok, ok := b.find(digest)
	if !ok {
		tok, ok = b.ask(r.Context(), digest)
	}
	switch state := tok.StateAt(time.Now()); {
	case !ok:
		return tok, events.Errorf(events.CodeUnauthenticated, "no token of this profile has this secret")
	case state != events.TokenUsable:
		return tok, events.Errorf(events.CodeUnauthenticated, "the token %q is %s", tok.Name, state)
	}
	return tok, nil
}

func (b *bearers) find(digest string) (tokens.Token, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Find(digest)
}

// ask takes in what the bus has of the profile by now and looks again.
func (b *bearers) ask(ctx context.Context, digest string) (tokens.Token, bool) {
	if !b.confirm.Allow() {
		return tokens.Token{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	tips, err := b.conn.Tips(ctx, events.ScopeProfile)
	if err != nil || len(tips) == 0 {
		return tokens.Token{}, false
	}
	for {
		news := b.news.next()
		b.mu.Lock()
		tok, ok := b.state.Find(digest)
		done := b.at >= tips[0].Sequence
		b.mu.Unlock()
		if ok || done {
			return tok, ok
		}
		select {
		case <-news:
		case <-ctx.Done():
			return tokens.Token{}, false
		}
	}
}

// life returns a context that ends with the token: when it is revoked, or expires.
func (b *bearers) life(ctx context.Context, tok tokens.Token) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	cut := b.cut(tok.Name)
	expired, stopTimer := never()
	if !tok.ExpiresAt.IsZero() {
		t := time.NewTimer(time.Until(tok.ExpiresAt))
		expired, stopTimer = t.C, func() { t.Stop() }
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		defer stopTimer()
		select {
		case <-cut:
			cancel(events.Errorf(events.CodeUnauthenticated, "the token %q was revoked", tok.Name))
		case <-expired:
			cancel(events.Errorf(events.CodeUnauthenticated, "the token %q has expired", tok.Name))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(context.Canceled)
		watch.Wait()
	}
}

func never() (<-chan time.Time, func()) { return nil, func() {} }

// cut returns a channel that is closed when the token is revoked.
func (b *bearers) cut(name events.TokenName) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tok, ok := b.state.Get(name); ok && !tok.RevokedAt.IsZero() {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	if b.cuts[name] == nil {
		b.cuts[name] = make(chan struct{})
	}
	return b.cuts[name]
}
