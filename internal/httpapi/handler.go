package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/tokens"
)

// call is one request by a known token.
type call struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	route *route
	token tokens.Token
	conn  *client.Conn
}

// ctx is the request's context, whose commands are sent for the token.
func (c *call) ctx() context.Context { return c.r.Context() }

// router registers the routes of the table, and nothing else.
func (s *Server) router() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range s.routes {
		rt := &s.routes[i]
		mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) { s.serve(rt, w, r) })
	}
	return mux
}

// handler is what every request passes: the check of its host name, its token, the route.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := s.checkHost(r.Host); err != nil {
			s.refuse(w, r, err)
			return
		}
		if name, ok := strings.CutPrefix(r.URL.Path, gatewayPath); ok {
			s.gateway(name, w, r)
			return
		}
		tok, err := s.bearers.of(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if _, pattern := s.mux.Handler(r); pattern == "" {
			s.noRoute(w, r)
			return
		}
		s.mux.ServeHTTP(w, r.WithContext(withToken(r.Context(), tok)))
	})
}

type tokenKey struct{}

func withToken(ctx context.Context, tok tokens.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, tok)
}

// serve runs a route for the token that [Server.handler] has found.
func (s *Server) serve(rt *route, w http.ResponseWriter, r *http.Request) {
	tok := r.Context().Value(tokenKey{}).(tokens.Token) // set by handler for every route
	ctx := client.WithActingFor(r.Context(), tok.Name)
	if parent := r.Header.Get("Traceparent"); parent != "" {
		ctx = client.WithTrace(ctx, parent, r.Header.Get("Tracestate"))
	}
	if !rt.long {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.RequestTime)
		defer cancel()
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(s.cfg.RequestTime)) // fails only for what cannot be slow
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	c := &call{s: s, w: w, r: r.WithContext(ctx), route: rt, token: tok, conn: s.connFor(tok)}
	err := c.may()
	if err == nil {
		err = rt.serve(c)
	}
	if err != nil {
		s.refuse(w, c.r, err)
	}
}

// may refuses tokens that a route of the edge's own is not for. The bus itself refuses, and
// records, those that a command is not for.
func (c *call) may() error {
	if c.route.command != "" || slices.Contains(c.route.roles, c.token.Role) {
		return nil
	}
	c.s.cfg.Logger.Warn("refused", "token", c.token.Name, "route", c.route.id)
	return events.Errorf(events.CodeForbidden, "a token of role %s may not do this", c.token.Role)
}

// noRoute says whether the path or the method is wrong.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := s.mux.Handler(other); pattern != "" {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) == 0 {
		s.refuse(w, r, events.Errorf(events.CodeUnknownCommand, "there is no route %s", r.URL.Path))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.problem(w, problemOf(events.Errorf(events.CodeUnknownCommand, "%s is done by %s, not %s",
		r.URL.Path, strings.Join(allowed, " and "), r.Method)), http.StatusMethodNotAllowed)
}

// checkHost refuses names that this server does not have: a page of a foreign name that
// is made to point here cannot speak to it.
func (s *Server) checkHost(hostport string) error {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	listening, _, err := net.SplitHostPort(s.listen.Addr().String())
	switch {
	case err == nil && host == listening, slices.Contains(s.cfg.Hosts, host):
		return nil
	case IsLoopback(s.listen.Addr().String()) && IsLoopback(net.JoinHostPort(host, "0")):
		return nil
	case s.cfg.TLS != nil && certified(s.cfg.TLS, host):
		return nil
	}
	return events.Errorf(events.CodeForbidden, "this server is not %q", host)
}

func certified(cfg *tls.Config, host string) bool {
	for i := range cfg.Certificates {
		if leaf := cfg.Certificates[i].Leaf; leaf != nil && leaf.VerifyHostname(host) == nil {
			return true
		}
	}
	return false
}
