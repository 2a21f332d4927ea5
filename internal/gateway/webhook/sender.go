package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"keryx/internal/gateway/platform"
)

// Endpoint is an address that signed requests are sent to.
type Endpoint struct {
	URL string
	// Secret is that of Standard Webhooks.
	Secret string
	// AllowPrivate lets the address be one that is not public: of this machine or network.
	AllowPrivate bool
}

// ErrPrivateAddress says that an address is not public.
var ErrPrivateAddress = errors.New("the address is not public, and that is not allowed")

// Bounds of a request.
const (
	dialTime   = 10 * time.Second
	headerTime = 20 * time.Second
	answerMost = 64 << 10
)

// Sender sends signed requests to one endpoint. It is safe for concurrent use. Close it.
type Sender struct {
	url    string
	signer *Signer
	client *http.Client
}

// NewSender checks an endpoint.
func NewSender(e Endpoint) (*Sender, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of an endpoint", e.URL)
	}
	signer, err := NewSigner(e.Secret)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", u.Redacted(), err)
	}
	dialer := &net.Dialer{Timeout: dialTime}
	if !e.AllowPrivate { // looked at when the name was resolved: it cannot change behind that
		dialer.Control = refusePrivate
	}
	return &Sender{url: e.URL, signer: signer, client: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, ResponseHeaderTimeout: headerTime,
			TLSHandshakeTimeout: dialTime, MaxConnsPerHost: 16, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close gives idle connections back.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// refusePrivate is asked before each connection, with the address in numbers.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !Public(at.Addr()) {
		return fmt.Errorf("%s: %w", address, ErrPrivateAddress)
	}
	return nil
}

// notPublic are ranges that net/netip has no word for: shared, benchmarks, documentation,
// reserved, and translations into IPv4.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address is one of the public network.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Post sends a body once, under an id that stays when it is sent again. The error is
// *platform.FinalError or *platform.LaterError if the endpoint says so.
func (s *Sender) Post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return &platform.FinalError{Err: err}
	}
	now := time.Now()
	signature, err := s.signer.hook.Sign(id, now, body)
	if err != nil {
		return &platform.FinalError{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "keryx")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	resp, err := s.client.Do(req)
	if errors.Is(err, ErrPrivateAddress) {
		return &platform.FinalError{Err: err}
	}
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, answerMost)) // so that the connection is used again
	_ = resp.Body.Close()                                             // nothing of it is needed
	return verdict(resp, now)
}

// verdict is what an answer means.
func verdict(resp *http.Response, now time.Time) error {
	status := fmt.Errorf("the endpoint answers %s", resp.Status)
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 400, resp.StatusCode == http.StatusGone:
		return &platform.FinalError{Err: status}
	}
	if after, ok := retryAfter(resp.Header.Get("Retry-After"), now); ok {
		return &platform.LaterError{After: after, Err: status}
	}
	return status
}

// retryAfter reads a header in seconds or as a date.
func retryAfter(h string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(h, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(h); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}
