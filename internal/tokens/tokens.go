package tokens

import (
	"slices"
	"strings"
	"time"

	"keryx/events"
)

// Token is one token as the record has it.
type Token struct {
	Name      events.TokenName
	Role      events.Role
	Digest    string
	AddedAt   time.Time
	AddedBy   events.PrincipalName
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: it is not
}

// StateAt returns what t is good for at a time.
func (t Token) StateAt(now time.Time) events.TokenState {
	switch {
	case !t.RevokedAt.IsZero():
		return events.TokenGone
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return events.TokenExpired
	}
	return events.TokenUsable
}

// View returns what everybody may know of t.
func (t Token) View(now time.Time) events.TokenView {
	return events.TokenView{
		Name: t.Name, Role: t.Role, State: t.StateAt(now), AddedAt: t.AddedAt, AddedBy: t.AddedBy,
		ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt,
	}
}

// State is the fold of a profile's token events. The zero value has no token.
type State struct {
	byName   map[events.TokenName]Token
	byDigest map[string]events.TokenName
}

// Fold applies one event. Types that are not about tokens change nothing; data that
// cannot be decoded is an error and changes nothing.
func (s *State) Fold(r events.Record) error {
	switch r.Type {
	case events.TypeTokenAdded:
		d, err := events.DataOf[events.TokenAdded](r)
		if err != nil {
			return err
		}
		s.add(Token{
			Name: d.Name, Role: d.Role, Digest: d.Digest, ExpiresAt: d.ExpiresAt, AddedAt: r.Time,
			AddedBy: events.PrincipalName(r.Source[strings.LastIndexByte(r.Source, '/')+1:]),
		})
	case events.TypeTokenRevoked:
		d, err := events.DataOf[events.TokenRevoked](r)
		if err != nil {
			return err
		}
		if t, ok := s.byName[d.Name]; ok && t.RevokedAt.IsZero() {
			t.RevokedAt = r.Time
			s.byName[d.Name] = t
		}
	}
	return nil
}

func (s *State) add(t Token) {
	if s.byName == nil {
		s.byName, s.byDigest = make(map[events.TokenName]Token), make(map[string]events.TokenName)
	}
	s.byName[t.Name], s.byDigest[t.Digest] = t, t.Name
}

// Add decides on a new token: the event to append, or name_taken. A token that is the
// same but for its time is taken as another one, and refused.
func (s *State) Add(c events.AddToken, now time.Time) (events.TokenAdded, error) {
	if err := c.Name.Validate(); err != nil {
		return events.TokenAdded{}, invalid("/name", err.Error())
	}
	if !slices.Contains(events.TokenRoles(), c.Role) {
		return events.TokenAdded{}, invalid("/role", "a token cannot have the role "+string(c.Role))
	}
	if _, ok := s.byName[c.Name]; ok {
		return events.TokenAdded{}, events.Errorf(events.CodeNameTaken,
			"there is or was a token %q; a name is given once, so that the record means one token by it", c.Name)
	}
	if _, ok := s.byDigest[c.Digest]; ok {
		return events.TokenAdded{}, invalid("/digest", "another token has the same secret")
	}
	fact := events.TokenAdded{Name: c.Name, Role: c.Role, Digest: c.Digest}
	if c.TTLMS > 0 {
		fact.ExpiresAt = now.Add(time.Duration(c.TTLMS) * time.Millisecond).UTC()
	}
	return fact, nil
}

// Revoke decides on the end of a token: nil if it has been revoked before.
func (s *State) Revoke(c events.RevokeToken) (*events.TokenRevoked, error) {
	t, ok := s.byName[c.Name]
	if !ok {
		return nil, events.Errorf(events.CodeUnknownToken, "there is no token %q", c.Name)
	}
	if !t.RevokedAt.IsZero() {
		return nil, nil
	}
	return &events.TokenRevoked{Name: c.Name, Reason: c.Reason}, nil
}

// Get returns the token of a name.
func (s *State) Get(name events.TokenName) (Token, bool) {
	t, ok := s.byName[name]
	return t, ok
}

// Find returns the token whose secret has a digest. It is a look-up by a hash of what the
// caller sent, so that its time tells nothing of any secret.
func (s *State) Find(digest string) (Token, bool) { return s.Get(s.byDigest[digest]) }

// List returns all tokens by name.
func (s *State) List(now time.Time) []events.TokenView {
	out := make([]events.TokenView, 0, len(s.byName))
	for _, t := range s.byName {
		out = append(out, t.View(now))
	}
	slices.SortFunc(out, func(a, b events.TokenView) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return out
}

// MayActFor reports whether a principal of a role may act for a token of another: of its
// own role, an observer's, and, as a gateway, an operator's. In each case the lesser one's
// rights are what both have, so that the principal's own are checked and no more; what
// only one may send is refused before.
func MayActFor(principal, token events.Role) bool {
	return principal == token || token == events.RoleObserver ||
		principal == events.RoleGateway && token == events.RoleOperator
}

func invalid(path, message string) *events.Error {
	return &events.Error{Code: events.CodeInvalid, Message: message, Path: path}
}
