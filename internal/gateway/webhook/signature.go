package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// GitHubSignature is the header of a signature over the body alone: sha256=HEX, the digits
// small or capital.
const GitHubSignature = "X-Hub-Signature-256"

// secretLeast is the least length of a secret, in bytes: 24, as Standard Webhooks asks.
const secretLeast = 24

// Errors of this package.
var (
	// ErrWeakSecret says that a secret is empty, or too short to keep anybody out.
	ErrWeakSecret = errors.New("a secret needs at least 24 bytes")
	// ErrUnsigned says that a request has no signature, or a wrong one, or one of another
	// time.
	ErrUnsigned = errors.New("the request is not signed by a known secret")
)

// Signer makes and checks signatures of Standard Webhooks.
type Signer struct{ hook *standardwebhooks.Webhook }

// NewSigner takes a secret: whsec_ and base64. The error wraps [ErrWeakSecret] if it is
// too short; it never quotes the secret.
func NewSigner(secret string) (*Signer, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(secret), "whsec_"))
	if err != nil {
		return nil, errors.New("a secret of Standard Webhooks is whsec_ and base64")
	}
	if len(key) < secretLeast {
		return nil, fmt.Errorf("this one has %d: %w", len(key), ErrWeakSecret)
	}
	hook, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, fmt.Errorf("take a secret: %w", err)
	}
	return &Signer{hook}, nil
}

// checker knows the secrets of a hook.
type checker struct {
	standard []*Signer
	github   [][]byte
}

func newChecker(standard, github []string) (*checker, error) {
	if len(standard)+len(github) == 0 {
		return nil, fmt.Errorf("a hook without a secret is open to everybody: %w", ErrWeakSecret)
	}
	c := &checker{}
	for _, secret := range standard {
		s, err := NewSigner(secret)
		if err != nil {
			return nil, err
		}
		c.standard = append(c.standard, s)
	}
	for _, secret := range github {
		if secret = strings.TrimSpace(secret); len(secret) < secretLeast {
			return nil, fmt.Errorf("this one has %d: %w", len(secret), ErrWeakSecret)
		}
		c.github = append(c.github, []byte(secret))
	}
	return c, nil
}

// check returns the id of a request's message.
func (c *checker) check(h http.Header, body []byte) (id string, err error) {
	for _, s := range c.standard {
		if s.hook.Verify(body, h) == nil {
			return h.Get(standardwebhooks.HeaderWebhookID), nil
		}
	}
	given, ok := strings.CutPrefix(h.Get(GitHubSignature), "sha256=")
	if digest, err := hex.DecodeString(given); ok && err == nil {
		for _, secret := range c.github {
			mac := hmac.New(sha256.New, secret)
			mac.Write(body)
			if hmac.Equal(digest, mac.Sum(nil)) {
				sum := sha256.Sum256(body)
				return "body-" + hex.EncodeToString(sum[:]), nil
			}
		}
	}
	return "", ErrUnsigned
}
