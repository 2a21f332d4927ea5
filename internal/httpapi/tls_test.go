package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/httpapi"
)

// certificate is one of its own making for a host name.
func certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestOverTLSTheCertificatesNamesAreTheServers(t *testing.T) {
	t.Parallel()
	cert := certificate(t, "keryx.example")
	e := startEdge(t, func(c *httpapi.Config) {
		c.TLS, c.Hosts = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, []string{"proxy.example"}
	})
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	e.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "keryx.example", MinVersion: tls.VersionTLS12}
	if !strings.HasPrefix(e.url, "https://127.0.0.1:") {
		t.Fatalf("served at %s", e.url)
	}
	for host, want := range map[string]int{"keryx.example": 200, "KERYX.example:444": 200, "proxy.example": 200, "127.0.0.1": 200, "evil.example": 403} {
		r := e.request("GET", "/v1/sessions", e.secrets[events.RoleObserver], "")
		r.Host = host
		if a := e.send(r); a.status != want {
			t.Errorf("host %s: %d %s, want %d", host, a.status, a.body, want)
		}
	}
	e.register("web:1")
	if got := e.stream(events.RoleObserver, "/v1/sessions/web:1/events").next(); got.typ() != "session.registered" {
		t.Errorf("streamed over TLS: %+v", got)
	}
}

func TestWhatCannotBeServedIsRefused(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	gw, host := e.connect("gw", events.RoleGateway), e.connect("h", events.RoleHost)
	conns := map[events.Role]*client.Conn{events.RoleGateway: gw}
	for _, c := range []struct {
		name string
		cfg  httpapi.Config
		is   error
	}{
		{"an address of other machines without TLS", httpapi.Config{Conns: conns, Addr: "0.0.0.0:0"}, httpapi.ErrNotLoopback},
		{"every address", httpapi.Config{Conns: conns, Addr: ":0"}, httpapi.ErrNotLoopback},
		{"no address", httpapi.Config{Conns: conns}, httpapi.ErrNotLoopback},
		{"no gateway", httpapi.Config{Conns: map[events.Role]*client.Conn{events.RoleHost: host}, Addr: "127.0.0.1:0"}, nil},
		{"a principal of another role", httpapi.Config{Conns: map[events.Role]*client.Conn{events.RoleGateway: gw, events.RoleOperator: host}, Addr: "127.0.0.1:0"}, nil},
		{"a port that is taken", httpapi.Config{Conns: conns, Addr: strings.TrimPrefix(e.url, "http://")}, nil},
	} {
		s, err := httpapi.Serve(t.Context(), c.cfg)
		if err == nil {
			t.Errorf("%s is served at %s", c.name, s.URL())
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", c.name, err, c.is)
		}
	}
}
