package httpapi

import (
	"net/http"
	"time"

	"keryx/events"
)

// gatewayPath begins the paths of requests that are signed, and bear no token.
const gatewayPath = "/v1/gateways/"

// gateway hands a request to the gateway of that name.
func (s *Server) gateway(name string, w http.ResponseWriter, r *http.Request) {
	h, ok := s.cfg.Gateways[name]
	switch {
	case !ok:
		s.refuse(w, r, events.Errorf(events.CodeUnknownCommand, "there is no gateway %q here", name))
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		s.problem(w, problemOf(events.Errorf(events.CodeUnknownCommand, "%s is done by POST", r.URL.Path)), http.StatusMethodNotAllowed)
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(s.cfg.RequestTime)) // fails only for what cannot be slow
	h.ServeHTTP(w, r)
}
