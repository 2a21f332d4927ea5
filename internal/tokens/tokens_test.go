package tokens_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/tokens"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func record(t require, typ events.Type, at time.Time, data any) events.Record {
	b, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return events.Record{Type: typ, Time: at, Source: events.Source("default", "operator"), Data: b}
}

// require is what both kinds of tests have.
type require interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func TestSecretsAreLongAndNeverTheSame(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^keryx_[a-z2-7]{52}$`)
	a, b := tokens.NewSecret(), tokens.NewSecret()
	if !form.MatchString(a) || a == b || tokens.Digest(a) == tokens.Digest(b) || len(tokens.Digest(a)) != 64 {
		t.Errorf("secrets are %q and %q", a, b)
	}
}

func TestAddRefusesWhatNoTokenMayBe(t *testing.T) {
	t.Parallel()
	var s tokens.State
	for _, c := range []struct {
		name string
		add  events.AddToken
		path string
	}{
		{"a name that is no slug", events.AddToken{Name: "A b", Role: events.RoleHost}, "/name"},
		{"a role without a place at the edge", events.AddToken{Name: "a", Role: events.RoleExecutor}, "/role"},
		{"no role", events.AddToken{Name: "a"}, "/role"},
	} {
		_, err := s.Add(c.add, noon)
		var e *events.Error
		if !errors.As(err, &e) || e.Code != events.CodeInvalid || e.Path != c.path {
			t.Errorf("%s: %v, want invalid at %s", c.name, err, c.path)
		}
	}
}

// TestATokenIsUsableFromItsAddingUntilItsFirstEnd draws histories and compares the fold
// with a model of them.
func TestATokenIsUsableFromItsAddingUntilItsFirstEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s tokens.State
		type life struct {
			digest string
			ends   time.Time
			gone   bool
		}
		model := map[events.TokenName]*life{}
		now := noon
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "passed")) * time.Millisecond)
			name := events.TokenName(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"))
			if rapid.Bool().Draw(t, "add") {
				add := events.AddToken{Name: name, Role: events.RoleGateway, Digest: tokens.Digest(rapid.String().Draw(t, "secret")), TTLMS: rapid.Int64Range(0, 3000).Draw(t, "ttl")}
				fact, err := s.Add(add, now)
				if _, had := model[name]; had {
					if !errors.Is(err, events.ErrOf(events.CodeNameTaken)) {
						t.Fatalf("a name given again: %v", err)
					}
					continue
				}
				if err != nil {
					continue // the secret was another's: checked below by Find
				}
				if err := s.Fold(record(t, events.TypeTokenAdded, now, fact)); err != nil {
					t.Fatal(err)
				}
				model[name] = &life{digest: add.Digest, ends: fact.ExpiresAt}
				if (add.TTLMS > 0) == fact.ExpiresAt.IsZero() {
					t.Fatalf("ttl %d became expiry %s", add.TTLMS, fact.ExpiresAt)
				}
			} else {
				fact, err := s.Revoke(events.RevokeToken{Name: name})
				m := model[name]
				switch {
				case m == nil:
					if !errors.Is(err, events.ErrOf(events.CodeUnknownToken)) {
						t.Fatalf("revoke of an unknown token: %v", err)
					}
				case err != nil || (fact == nil) != m.gone:
					t.Fatalf("revoke: %v, %v; it was revoked: %t", fact, err, m.gone)
				case fact != nil:
					if err := s.Fold(record(t, events.TypeTokenRevoked, now, *fact)); err != nil {
						t.Fatal(err)
					}
					m.gone = true
				}
			}
			for name, m := range model {
				tok, ok := s.Find(m.digest)
				want := events.TokenUsable
				switch {
				case m.gone:
					want = events.TokenGone
				case !m.ends.IsZero() && !now.Before(m.ends):
					want = events.TokenExpired
				}
				if !ok || tok.Name != name || tok.StateAt(now) != want {
					t.Fatalf("token %s is %+v, %t; want %s", name, tok, ok, want)
				}
			}
			if len(s.List(now)) != len(model) {
				t.Fatalf("%d tokens are listed, want %d", len(s.List(now)), len(model))
			}
		}
	})
}

func TestAPrincipalActsForItsEqualsAndLessersAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		principal, token events.Role
		may              bool
	}{
		{events.RoleGateway, events.RoleGateway, true},
		{events.RoleHost, events.RoleHost, true},
		{events.RoleOperator, events.RoleOperator, true},
		{events.RoleGateway, events.RoleObserver, true},
		{events.RoleGateway, events.RoleOperator, true},
		{events.RoleOperator, events.RoleGateway, false},
		{events.RoleOperator, events.RoleHost, false},
		{events.RoleHost, events.RoleGateway, false},
		{events.RoleHost, events.RoleOperator, false},
		{events.RoleGateway, events.RoleHost, false},
		{events.RoleExecutor, events.RoleGateway, false},
		{events.RoleObserver, events.RoleGateway, false},
	} {
		if got := tokens.MayActFor(c.principal, c.token); got != c.may {
			t.Errorf("a %s for a token of role %s: %t, want %t", c.principal, c.token, got, c.may)
		}
	}
}
