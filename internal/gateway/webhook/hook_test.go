package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"keryx/events"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/platformtest"
	"keryx/internal/gateway/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))
	github = "a secret of twenty-four bytes or more"
)

// sign makes a signed request; at is the time that is signed.
func sign(t *testing.T, url, id string, at time.Time, body string) *http.Request {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := hook.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	req.Header.Set("webhook-signature", signature)
	return req
}

// side is the system that calls the hook, and takes its replies.
type side struct {
	hook, replies *httptest.Server
	got           chan platform.Outgoing
	answers       chan platformtest.Answer
}

func start(t *testing.T) (platform.Platform, platformtest.Side) {
	t.Helper()
	s := &side{got: make(chan platform.Outgoing), answers: make(chan platformtest.Answer)}
	s.replies = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.reply(t, w, r) }))
	h := newHook(t, webhook.Config{
		Secrets: []string{secret}, GitHubSecrets: []string{github},
		Reply: webhook.Endpoint{URL: s.replies.URL, Secret: secret, AllowPrivate: true},
	})
	s.hook = httptest.NewServer(h)
	t.Cleanup(func() { s.hook.Close(); h.Close(); s.replies.Close() })
	return h, s
}

func newHook(t *testing.T, cfg webhook.Config) *webhook.Hook {
	t.Helper()
	cfg.Account, cfg.Logger = "bot", slog.New(slog.DiscardHandler)
	h, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (s *side) reply(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Error(err)
	}
	if err := hook.Verify(body, r.Header); err != nil {
		t.Errorf("a reply is not signed: %v", err)
	}
	var m struct {
		ID, Chat, Thread, Text string
		Part, Parts            int
		Session                events.SessionID
	}
	if err := json.Unmarshal(body, &m); err != nil || r.Header.Get("webhook-id") != m.ID {
		t.Errorf("%v, id %q in the header, %q in the body", err, r.Header.Get("webhook-id"), m.ID)
	}
	s.got <- platform.Outgoing{ID: m.ID, Place: events.Place{Chat: m.Chat, Thread: m.Thread}, Text: m.Text, Part: m.Part, Parts: m.Parts, Session: m.Session}
	switch a := <-s.answers; {
	case a.Later > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(a.Later.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
	case a.Final:
		w.WriteHeader(http.StatusGone)
	case a.Fail:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// Say implements platformtest.Side.
func (s *side) Say(t *testing.T, m platform.Incoming) (taken, again bool) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"chat": m.Place.Chat, "thread": m.Place.Thread, "user": m.User, "text": m.Text})
	if err != nil {
		t.Fatal(err)
	}
	status, wait := do(t, sign(t, s.hook.URL, m.Message, time.Now(), string(body)))
	return status == http.StatusOK, status == http.StatusServiceUnavailable && wait == "2"
}

func do(t *testing.T, req *http.Request) (status int, retryAfter string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

// Next implements platformtest.Side.
func (s *side) Next(_ *testing.T, a platformtest.Answer) platform.Outgoing {
	m := <-s.got
	s.answers <- a
	return m
}

func TestAHookKeepsTheRulesOfAPlatform(t *testing.T) {
	platformtest.Run(t, platformtest.Features{}, start)
}

func TestCase_I3_ASignatureCoversTheTimeAndTheBodyAsItCame(t *testing.T) {
	t.Parallel()
	const body = `{"b": 1,  "a":2}`
	now := time.Now()
	mac := hmac.New(sha256.New, []byte(github))
	mac.Write([]byte(body))
	digest := hex.EncodeToString(mac.Sum(nil))
	hub := func(h string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header = http.Header{"X-Hub-Signature-256": {h}, "X-Github-Delivery": {"1"}}
		}
	}
	tests := []struct {
		name   string
		at     time.Time
		body   string // "": as it was signed
		change func(*http.Request)
		want   int
		id     string
	}{
		{"as it is", now, "", func(*http.Request) {}, 200, "Ev-1"},
		{"the time changed", now, "", func(r *http.Request) {
			r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10))
		}, 401, ""},
		{"the id changed", now, "", func(r *http.Request) { r.Header.Set("webhook-id", "Ev-2") }, 401, ""},
		{"the body compacted", now, `{"b":1,"a":2}`, func(*http.Request) {}, 401, ""},
		{"400 s old", now.Add(-400 * time.Second), "", func(*http.Request) {}, 401, ""},
		{"400 s in the future", now.Add(400 * time.Second), "", func(*http.Request) {}, 401, ""},
		{"290 s old", now.Add(-290 * time.Second), "", func(*http.Request) {}, 200, "Ev-1"},
		{"no header of time", now, "", func(r *http.Request) { r.Header.Del("webhook-timestamp") }, 401, ""},
		{"no header of the signature", now, "", func(r *http.Request) { r.Header.Del("webhook-signature") }, 401, ""},
		{"nothing is signed", now, "", func(r *http.Request) { r.Header = http.Header{} }, 401, ""},
		{"the body alone, as GitHub does", now, "", hub("sha256=" + digest), 200, ""},
		{"the same in capitals", now, "", hub("sha256=" + strings.ToUpper(digest)), 200, ""},
		{"a digest without its name", now, "", hub(digest), 401, ""},
		{"a digest of another secret", now, "", hub("sha256=" + strings.Repeat("0", 64)), 401, ""},
		{"an empty digest", now, "", hub("sha256="), 401, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := start(t)
			box := platformtest.NewBox()
			platformtest.Serve(t, p, box)
			served(t, s.(*side))
			before := len(box.Got())
			req := sign(t, s.(*side).hook.URL, "Ev-1", tt.at, body)
			if tt.body != "" {
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader(tt.body)), int64(len(tt.body))
			}
			tt.change(req)
			if status, _ := do(t, req); status != tt.want {
				t.Errorf("answered %d, want %d", status, tt.want)
			}
			got := box.Got()[before:]
			if (tt.want == 200) != (len(got) == 1) {
				t.Fatalf("%d messages came in", len(got))
			}
			if len(got) == 1 && (got[0].Text != body || tt.id != "" && got[0].Message != tt.id) {
				t.Errorf("came in as %+v", got[0])
			}
		})
	}
}

// served waits until the hook takes messages.
func served(t *testing.T, s *side) {
	t.Helper()
	deadline := time.Now().Add(platformtest.Patience)
	for {
		if taken, _ := s.Say(t, platformtest.Hello("m0")); taken {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the hook is not served")
		}
	}
}

func TestCase_I3_AnEmptyOrShortSecretIsRefusedAtConfiguration(t *testing.T) {
	t.Parallel()
	for _, cfg := range []webhook.Config{
		{},
		{Secrets: []string{""}},
		{Secrets: []string{"whsec_"}},
		{GitHubSecrets: []string{""}},
		{GitHubSecrets: []string{"short"}},
		{Secrets: []string{secret}, Reply: webhook.Endpoint{URL: "https://example.org"}},
	} {
		cfg.Account = "bot"
		if _, err := webhook.New(cfg); !errors.Is(err, webhook.ErrWeakSecret) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestCase_I3_ACopyOfABodySignedAloneIsTheSameMessage(t *testing.T) {
	t.Parallel()
	p, s := start(t)
	box := platformtest.NewBox()
	platformtest.Serve(t, p, box)
	served(t, s.(*side))
	before := len(box.Got())
	mac := hmac.New(sha256.New, []byte(github))
	mac.Write([]byte("pushed"))
	for _, delivery := range []string{"1", "2"} {
		req := sign(t, s.(*side).hook.URL, "x", time.Now(), "pushed")
		req.Header = http.Header{"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}, "X-Github-Delivery": {delivery}}
		do(t, req)
	}
	got := box.Got()[before:]
	if len(got) != 2 || got[0].Message != got[1].Message || got[0].Place != got[1].Place {
		t.Errorf("came in as %+v", got)
	}
}

func TestARequestIsNotSentWhereItMustNotGo(t *testing.T) {
	t.Parallel()
	called := make(chan string, 8)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.URL.Path }))
	defer target.Close()
	redirect := httptest.NewServer(http.RedirectHandler(target.URL+"/elsewhere", http.StatusTemporaryRedirect))
	defer redirect.Close()
	tests := []struct {
		name string
		to   webhook.Endpoint
	}{
		{"a private address", webhook.Endpoint{URL: target.URL, Secret: secret}},
		{"a name of a private address", webhook.Endpoint{URL: strings.Replace(target.URL, "127.0.0.1", "localhost", 1), Secret: secret}},
		{"a redirect", webhook.Endpoint{URL: redirect.URL, Secret: secret, AllowPrivate: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := webhook.NewSender(tt.to)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), platformtest.Patience)
			defer cancel()
			var final *platform.FinalError
			if err := s.Post(ctx, "id", []byte("{}")); !errors.As(err, &final) {
				t.Errorf("told as %v", err)
			}
		})
	}
	if len(called) > 0 {
		t.Errorf("%s was called", <-called)
	}
}

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:4700::1111": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "0.0.0.0": false,
		"100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "::1": false, "::": false, "fe80::1": false, "fd00::1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
	} {
		if got := webhook.Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
	}
}
