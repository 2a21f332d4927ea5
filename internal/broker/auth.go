package broker

import (
	"encoding/base64"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// authenticator lets in whoever proves a key that the registry knows, with the rights
// of its principal, and remembers the connections of each key so that they can be cut.
type authenticator struct {
	registry *Registry
	logger   *slog.Logger

	// mu makes looking a key up and remembering its connection one step, so that a
	// revocation in between cannot miss a connection.
	mu     sync.Mutex
	conns  map[string]map[uint64]struct{} // connection ids by public key
	server *server.Server                 // nil until it has started
}

func newAuthenticator(r *Registry, l *slog.Logger) *authenticator {
	return &authenticator{registry: r, logger: l, conns: map[string]map[uint64]struct{}{}}
}

var _ server.Authentication = (*authenticator)(nil)

// serve tells which server to cut connections at.
func (a *authenticator) serve(s *server.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = s
}

// Check implements server.Authentication: an NKey over the server's nonce, or nothing.
func (a *authenticator) Check(c server.ClientAuthentication) bool {
	opts := c.GetOpts()
	if c.Kind() != server.CLIENT || !proven(opts.Nkey, opts.Sig, c.GetNonce()) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok := a.registry.byKey(opts.Nkey)
	if !ok || (h.local && !inProcess(c)) {
		return false
	}
	a.admit(c, h)
	a.rememberLocked(opts.Nkey, c.GetID())
	return true
}

func (a *authenticator) admit(c server.ClientAuthentication, h holder) {
	if h.system {
		c.RegisterUser(&server.User{Username: "system"})
		return
	}
	c.RegisterUser(&server.User{
		Username:    string(h.principal.Profile) + "/" + string(h.principal.Name),
		Permissions: permissions(h.principal),
	})
}

// proven reports whether sig signs the nonce with the key.
func proven(key, sig string, nonce []byte) bool {
	if key == "" || len(nonce) == 0 {
		return false
	}
	raw, err := decodeSignature(sig)
	if err != nil {
		return false
	}
	public, err := nkeys.FromPublicKey(key)
	return err == nil && public.Verify(nonce, raw) == nil
}

// decodeSignature takes both forms that clients send, as the server itself does: those in
// Go use the alphabet for URLs, those in other languages the standard one.
func decodeSignature(sig string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil {
		return base64.StdEncoding.DecodeString(sig)
	}
	return raw, nil
}

// inProcess reports whether c is a pipe within this process.
func inProcess(c server.ClientAuthentication) bool {
	addr := c.RemoteAddress()
	return addr != nil && addr.Network() == "pipe"
}

// rememberLocked also forgets connections of the key that have ended, so that what is
// remembered is bounded by what is open.
func (a *authenticator) rememberLocked(key string, id uint64) {
	ids := a.conns[key]
	if ids == nil {
		ids = map[uint64]struct{}{}
		a.conns[key] = ids
	}
	if a.server != nil {
		for old := range ids {
			if a.server.GetClient(old) == nil {
				delete(ids, old)
			}
		}
	}
	ids[id] = struct{}{}
}

// revoke runs change, which takes rights away and returns the keys concerned, and cuts
// all their connections.
func (a *authenticator) revoke(change func() []string) {
	a.mu.Lock()
	keys := change()
	s := a.server
	var cut []uint64
	for _, key := range keys {
		for id := range a.conns[key] {
			cut = append(cut, id)
		}
		delete(a.conns, key)
	}
	a.mu.Unlock()
	for _, id := range cut {
		if err := s.DisconnectClientByID(id); err != nil {
			a.logger.Debug("connection had ended before it was cut", "id", id)
		}
	}
}
