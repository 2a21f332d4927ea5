package bridge

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/gateway/platform"
)

// Bounds of codes: a code has 40 random bits; whoever guesses gets few tries.
const (
	codeLength  = 8
	codeTime    = 10 * time.Minute
	codeMost    = 1024
	guessesMost = 5
)

// Links are codes by which a second chat joins the session of a first. They are kept in
// memory: a bridge that ends forgets them. It is safe for concurrent use.
type Links struct {
	mu      sync.Mutex
	codes   map[string]link
	guesses map[string]guesses
}

type link struct {
	session events.SessionID
	expires time.Time
}

type guesses struct {
	n     int
	until time.Time
}

// NewLinks returns no codes.
func NewLinks() *Links {
	return &Links{codes: make(map[string]link), guesses: make(map[string]guesses)}
}

// mint makes a code for a session.
func (l *Links) mint(id events.SessionID, now time.Time) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for code, known := range l.codes {
		if !now.Before(known.expires) {
			delete(l.codes, code)
		}
	}
	if len(l.codes) >= codeMost {
		return "", false
	}
	code := rand.Text()[:codeLength]
	l.codes[code] = link{session: id, expires: now.Add(codeTime)}
	return code, true
}

// take uses a code up. who is who asks: after too many wrong codes none is taken of them
// for a while.
func (l *Links) take(code, who string, now time.Time) (events.SessionID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, g := range l.guesses {
		if !now.Before(g.until) {
			delete(l.guesses, other)
		}
	}
	g := l.guesses[who]
	known, ok := l.codes[strings.ToUpper(code)]
	if !ok || !now.Before(known.expires) || g.n >= guessesMost {
		l.guesses[who] = guesses{n: g.n + 1, until: now.Add(codeTime)}
		return "", false
	}
	delete(l.codes, strings.ToUpper(code))
	return known.session, true
}

// link does /link: without a code it mints one for the session of this place, with one it
// makes this place another name of the code's session.
func (i *inbox) link(ctx context.Context, m platform.Incoming, code string) error {
	if i.taken(m) {
		return nil // it came again
	}
	answer, session, err := i.linked(ctx, m.Place, code)
	if err != nil {
		return err
	}
	i.courier.mu.Lock()
	i.courier.ledger.received.add(messageID{m.Place.Chat, m.Message})
	i.courier.mu.Unlock()
	i.courier.say(saying{id: "link-" + events.NewID(), place: m.Place, text: answer, session: session}) //nolint:contextcheck // the courier outlives who gives it something to say
	return nil
}

func (i *inbox) linked(ctx context.Context, p events.Place, code string) (string, events.SessionID, error) {
	key := i.origins.key(p)
	if code == "" {
		v, err := i.cfg.Conn.Show(ctx, string(key))
		if events.CodeOf(err) == events.CodeUnknownSession {
			return "There is no conversation here yet that another chat could join.", "", nil
		}
		if err != nil {
			return "", "", err
		}
		minted, ok := i.cfg.Links.mint(v.Session, time.Now())
		if !ok {
			return "Too many codes are open. Try again later.", v.Session, nil
		}
		return fmt.Sprintf("Say /link %s in the other chat within %d minutes. The code works once.", minted, int(codeTime.Minutes())), v.Session, nil
	}
	session, ok := i.cfg.Links.take(code, string(key), time.Now())
	if !ok {
		return "This code is not known, was used, or is too old.", "", nil
	}
	_, err := i.cfg.Conn.Alias(ctx, string(session), events.Names{GatewaySessionKey: key})
	switch events.CodeOf(err) {
	case events.CodeIdentityConflict:
		return "This chat has a conversation of its own already; only the operator can join the two.", "", nil
	case events.CodeUnknownSession, events.CodeForbidden:
		return "This chat may not join that conversation.", "", nil
	}
	if err != nil {
		return "", "", err
	}
	i.mu.Lock()
	i.known[key] = session
	i.mu.Unlock()
	return "This chat goes on with the other one's conversation.", session, nil
}
