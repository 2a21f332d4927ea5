package authority

import (
	"context"
	"slices"
	"time"

	"keryx/events"
	"keryx/internal/tokens"
)

// acting hands on a request that its caller sends for a token, once the token allows it.
// A token that is not known yet may be in the profile's lane: its event is live, and so
// known at the edge, a moment before it is folded.
func (t *term) acting(req *request) {
	l := t.profiles.get(req.caller.Profile)
	if _, ok := l.token(req.actingFor); ok { // and was checked
		t.admit(req)
		return
	}
	again := func(context.Context) {
		tok, ok := l.token(req.actingFor)
		if !ok {
			t.fail(req, events.Errorf(events.CodeUnauthenticated, "there is no token %q", req.actingFor))
			return
		}
		if err := mayAct(req, tok); err != nil {
			t.fail(req, err)
			return
		}
		t.admit(req)
	}
	if !l.add(t.cfg.LaneQueue, again) {
		t.refuse(req.reply, events.Errorf(events.CodeRateLimited, "%d commands wait for profile %s already", t.cfg.LaneQueue, l.profile))
	}
}

// checkActing refuses what a token that is known may not do, before the data are looked
// at: who has no right learns nothing of what is wrong with them.
func (t *term) checkActing(req *request) *events.Error {
	if req.actingFor == "" {
		return nil
	}
	tok, ok := t.profiles.get(req.caller.Profile).token(req.actingFor)
	if !ok {
		return nil // it may be known in a moment
	}
	return mayAct(req, tok)
}

// mayAct refuses what the token may not do, whatever its bearer's edge may.
func mayAct(req *request, tok tokens.Token) *events.Error {
	if state := tok.StateAt(time.Now()); state != events.TokenUsable {
		return events.Errorf(events.CodeUnauthenticated, "token %q is %s", tok.Name, state)
	}
	if !slices.Contains(req.entry.Roles, tok.Role) {
		return events.Errorf(events.CodeForbidden, "a token of role %s may not send %s", tok.Role, req.entry.Type.Short())
	}
	if !tokens.MayActFor(req.caller.Role, tok.Role) {
		return events.Errorf(events.CodeForbidden, "a %s may not act for a token of role %s", req.caller.Role, tok.Role)
	}
	return nil
}

func (l *profileLane) token(name events.TokenName) (tokens.Token, bool) {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	return l.tokens.Get(name)
}

// tokenCommand decides on adding or revoking a token.
func (l *profileLane) tokenCommand(ctx context.Context, req *request) (any, error) {
	name := events.TokenName("")
	switch d := req.data.(type) {
	case events.AddToken:
		name = d.Name
		fact, err := l.tokens.Add(d, time.Now())
		if err != nil {
			return nil, err
		}
		if err := l.append(ctx, originOf(req), events.TypeTokenAdded, fact); err != nil {
			return nil, err
		}
	case events.RevokeToken:
		name = d.Name
		fact, err := l.tokens.Revoke(d)
		if err != nil {
			return nil, err
		}
		if fact != nil {
			if err := l.append(ctx, originOf(req), events.TypeTokenRevoked, *fact); err != nil {
				return nil, err
			}
		}
	default:
		return nil, events.Errorf(events.CodeUnknownCommand, "%s is not about a profile", req.entry.Type)
	}
	tok, _ := l.tokens.Get(name)
	return tok.View(time.Now()), nil
}

func (t *term) tokenList(p events.Profile) events.Tokens {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	return events.Tokens{Tokens: l.tokens.List(time.Now())}
}
