package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// problem is an RFC 9457 document: its code is that of the bus's own table.
type problem struct {
	Type      string            `json:"type"`  // urn:keryx:error:<code>
	Title     string            `json:"title"` // what the code means
	Status    int               `json:"status"`
	Detail    string            `json:"detail"` // what went wrong here
	Code      events.Code       `json:"code"`
	Path      string            `json:"path,omitempty"`
	Details   map[string]string `json:"details,omitempty"`
	Retryable bool              `json:"retryable"`
}

const mediaProblem = "application/problem+json"

// retryAfter is what a caller is asked to wait that may try again, in seconds.
const retryAfter = 1

// refusal returns the typed refusal of any error.
func refusal(err error) *events.Error {
	var e *events.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return events.Errorf(events.CodeTimeout, "it took too long")
	case errors.Is(err, nats.ErrConnectionClosed):
		return events.Errorf(events.CodeUnavailable, "the edge has no connection to the bus")
	}
	return events.Errorf(events.CodeInternal, "a fault of the edge; its log says more")
}

func problemOf(e *events.Error) problem {
	info, ok := events.Lookup(e.Code)
	if !ok { // of a newer bus
		info.HTTPStatus, info.Meaning = http.StatusConflict, "a code that this edge does not know"
	}
	return problem{
		Type: "urn:keryx:error:" + string(e.Code), Title: info.Meaning, Status: info.HTTPStatus,
		Detail: e.Message, Code: e.Code, Path: e.Path, Details: e.Details, Retryable: info.Retryable,
	}
}

// refuse answers with a problem, unless the caller has gone.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		return
	}
	e := refusal(err)
	if e.Code == events.CodeInternal {
		s.cfg.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	p := problemOf(e)
	s.problem(w, p, p.Status)
}

// writeSoon bounds the writes of one answer, whose caller may not read.
func (s *Server) writeSoon(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.WriteTime)) // fails only for what cannot be slow
}

func (s *Server) problem(w http.ResponseWriter, p problem, status int) {
	p.Status = status
	body, err := events.MarshalData(p)
	if err != nil {
		s.cfg.Logger.Error("encode a problem", "error", err)
	}
	h := w.Header()
	h.Set("Content-Type", mediaProblem)
	h.Set("Cache-Control", "no-store")
	if p.Code == events.CodeUnauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="keryx"`)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	s.writeSoon(w)
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone needs no answer
}
