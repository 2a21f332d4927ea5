package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"keryx/events"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/split"
)

// Bounds of requests.
const (
	// takeWithin is how long the bus may take before the sender is asked to come again.
	takeWithin = 8 * time.Second
	// pause is what a sender is asked to wait, in seconds.
	pause = "2"
	// bodyMost leaves room for what is around the text in a message of a session.
	bodyMost = events.MaxBody
	// replyMost is how much of a text one request carries.
	replyMost = 1 << 20
)

// Config is one hook. Account and a secret are needed.
type Config struct {
	Account events.AccountName
	// Secrets are those of Standard Webhooks, GitHubSecrets those of X-Hub-Signature-256.
	// Several are for a change of secrets: each is taken.
	Secrets, GitHubSecrets []string
	// Reply is where replies go; an empty URL: nowhere.
	Reply Endpoint
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Hook is a platform made of requests. It is an http.Handler for those that come in.
type Hook struct {
	cfg    Config
	check  *checker
	sender *Sender // nil: replies go nowhere

	mu sync.Mutex
	in platform.Inbox // nil: the account is not served here
}

var _ platform.Platform = (*Hook)(nil)

// New returns a hook that takes nothing yet. An empty or short secret is refused.
func New(cfg Config) (*Hook, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	check, err := newChecker(cfg.Secrets, cfg.GitHubSecrets)
	if err != nil {
		return nil, fmt.Errorf("make hook %s: %w", cfg.Account, err)
	}
	h := &Hook{cfg: cfg, check: check}
	if cfg.Reply.URL != "" {
		if h.sender, err = NewSender(cfg.Reply); err != nil {
			return nil, fmt.Errorf("make hook %s: %w", cfg.Account, err)
		}
	}
	return h, nil
}

// Kind implements platform.Platform.
func (h *Hook) Kind() string { return "webhook" }

// Traits implements platform.Platform.
func (h *Hook) Traits() platform.Traits {
	return platform.Traits{Mute: h.sender == nil, Limit: split.Limit{Max: replyMost, Unit: split.Bytes}}
}

// Serve implements platform.Platform.
func (h *Hook) Serve(ctx context.Context, in platform.Inbox) error {
	h.set(in)
	defer h.set(nil)
	<-ctx.Done()
	return nil
}

func (h *Hook) set(in platform.Inbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.in = in
}

// Close gives back the connections to the address of replies.
func (h *Hook) Close() {
	if h.sender != nil {
		h.sender.Close()
	}
}

// message is the body of a request that says where and who; any other body is a message
// as it is. It is that of a reply, too.
type message struct {
	Chat   string `json:"chat"`
	Thread string `json:"thread"`
	User   string `json:"user"`
	Text   string `json:"text"`
}

// read makes a message of a body. Only what is signed counts: no header, no query.
func (h *Hook) read(id string, body []byte) platform.Incoming {
	m := platform.Incoming{Message: id, Place: events.Place{Chat: string(h.cfg.Account)}, Text: string(body)}
	var own message
	if json.Unmarshal(body, &own) == nil && own.Text != "" {
		m.Place.Thread, m.User, m.Text = own.Thread, own.User, own.Text
		if own.Chat != "" {
			m.Place.Chat = own.Chat
		}
		m.Data = events.Raw(body)
	}
	return m
}

// ServeHTTP implements http.Handler.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMost))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		h.refuse(w, http.StatusRequestEntityTooLarge, events.CodeTooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit))
		return
	case err != nil:
		h.refuse(w, http.StatusBadRequest, events.CodeUndecodable, "the body could not be read")
		return
	}
	id, err := h.check.check(r.Header, body)
	if err != nil {
		h.cfg.Logger.Warn("request refused", "account", h.cfg.Account, "from", r.RemoteAddr, "error", err)
		h.refuse(w, http.StatusUnauthorized, events.CodeUnauthenticated, err.Error())
		return
	}
	if !utf8.Valid(body) {
		h.refuse(w, http.StatusBadRequest, events.CodeInvalid, "the body is not UTF-8")
		return
	}
	h.take(w, r, h.read(id, body))
}

// take answers when the bus has the message, or when it will not have it in time.
func (h *Hook) take(w http.ResponseWriter, r *http.Request, m platform.Incoming) {
	h.mu.Lock()
	in := h.in
	h.mu.Unlock()
	if in == nil {
		h.refuse(w, http.StatusServiceUnavailable, events.CodeUnavailable, platform.ErrNotServing.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), takeWithin)
	defer cancel()
	taken, err := in.Receive(ctx, m)
	if err != nil {
		info, known := events.Lookup(events.CodeOf(err))
		if !known || info.Retryable || info.HTTPStatus >= http.StatusInternalServerError || events.CodeOf(err) == events.CodeLeaseLost {
			h.cfg.Logger.Warn("message not taken", "account", h.cfg.Account, "message", m.Message, "error", err)
			h.refuse(w, http.StatusServiceUnavailable, events.CodeUnavailable, "the bus did not take it; send it again")
			return
		}
		h.refuse(w, info.HTTPStatus, events.CodeOf(err), err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // a sender that has gone comes again
		"receipt": taken.Receipt, "session": taken.Session, "duplicate": taken.Duplicate,
	})
}

func (h *Hook) refuse(w http.ResponseWriter, status int, code events.Code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", pause)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // a sender that has gone comes again
		"type": "urn:keryx:error:" + string(code), "status": status, "code": code, "detail": detail,
		"retryable": status == http.StatusServiceUnavailable,
	})
}

// Send implements platform.Platform.
func (h *Hook) Send(ctx context.Context, m platform.Outgoing) (string, error) {
	if h.sender == nil {
		return "", &platform.FinalError{Err: errors.New("no address for replies is configured")}
	}
	body, err := json.Marshal(map[string]any{
		"type": "message", "id": m.ID, "account": h.cfg.Account, "chat": m.Place.Chat, "thread": m.Place.Thread,
		"text": m.Text, "part": m.Part, "parts": m.Parts, "session": m.Session,
	})
	if err != nil {
		return "", &platform.FinalError{Err: err}
	}
	return "", h.sender.Post(ctx, m.ID, body)
}
