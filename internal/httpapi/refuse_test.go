package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/httpapi"
	"keryx/internal/tokens"
)

// concrete fills the path of an operation with ids that are well formed and nobody's.
func concrete(op operation) string {
	path := op.path
	for _, p := range op.parameters {
		if p.in == "path" {
			path = strings.ReplaceAll(path, "{"+p.name+"}", events.NewID())
		}
	}
	return path
}

// TestEveryRouteIsRefusedWithoutAToken_ThatIsGood walks the OpenAPI document.
func TestEveryRouteIsRefusedWithoutAToken_ThatIsGood(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	expired := e.token("expired", events.RoleOperator, time.Millisecond)
	revoked := e.token("revoked", events.RoleOperator, 0)
	if _, err := e.operator.RevokeToken(t.Context(), "revoked", ""); err != nil {
		t.Fatal(err)
	}
	await(t, "the token to expire", func() bool {
		return e.send(e.request("GET", "/v1/sessions", expired, "")).status == http.StatusUnauthorized
	})
	bad := map[string]string{
		"missing": "", "wrong": "Bearer " + tokens.NewSecret(), "expired": "Bearer " + expired, "revoked": "Bearer " + revoked,
		"foreign-profile": "Bearer " + foreignToken(t, e), "of another scheme": "Basic " + e.secrets[events.RoleOperator],
		"cut": "Bearer " + e.secrets[events.RoleOperator][:20], "empty": "Bearer ",
	}
	walked := 0
	for _, op := range operations(t) {
		for what, header := range bad {
			r := e.request(op.method, concrete(op), "", "")
			if header != "" {
				r.Header.Set("Authorization", header)
			}
			a := e.send(r)
			if a.status != http.StatusUnauthorized || a.code() != events.CodeUnauthenticated || a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with a token that is %s: %d %s", op.method, op.path, what, a.status, a.body)
			}
			walked++
		}
	}
	if walked < 300 {
		t.Errorf("only %d requests were walked", walked)
	}
}

// foreignToken is a good token of another profile of the same bus.
func foreignToken(t *testing.T, e *edge) string {
	t.Helper()
	c, err := e.node.Connect(t.Context(), events.Principal{Profile: "other", Name: "boss", Role: events.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	secret := tokens.NewSecret()
	if _, err := c.AddToken(t.Context(), events.AddToken{Name: "t-operator", Role: events.RoleOperator, Digest: tokens.Digest(secret)}); err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestEveryRouteIsRefusedToATokenThatIsTooSmall walks the OpenAPI document.
func TestEveryRouteIsRefusedToATokenThatIsTooSmall(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	refused := 0
	for _, op := range operations(t) {
		for _, role := range events.TokenRoles() {
			if slices.Contains(op.roles, role) {
				continue
			}
			body := ""
			if op.method != http.MethodGet {
				body = "{}"
			}
			e.refused(role, events.CodeForbidden, op.method, concrete(op), body)
			refused++
		}
	}
	if refused < 40 {
		t.Errorf("only %d requests were refused", refused)
	}
}

func gatewayAlone(c *httpapi.Config) {
	c.Conns = map[events.Role]*client.Conn{events.RoleGateway: c.Conns[events.RoleGateway]}
}

// TestAnEdgeWithAGatewayAloneServesNobodyMore holds hosts and operators to what the
// gateway may do.
func TestAnEdgeWithAGatewayAloneServesNobodyMore(t *testing.T) {
	t.Parallel()
	e := startEdge(t, gatewayAlone)
	id := e.register("web:1", "edge-host")
	e.refused(events.RoleHost, events.CodeForbidden, "POST", "/v1/hosts", "")
	e.refused(events.RoleHost, events.CodeForbidden, "GET", "/v1/sessions", "")
	e.refused(events.RoleOperator, events.CodeForbidden, "POST", "/v1/sessions/"+string(id)+"/execs", `{"selection":{"target":"local","generation":1,"access_epoch":0,"executor":"ex","instance":"`+events.NewID()+`"},"spec":{"argv":["true"]}}`)
	do[events.Receipt](e, events.RoleOperator, "POST", "/v1/sessions/web:1/messages", `{"body":{"text":"by the operator"}}`)
}
