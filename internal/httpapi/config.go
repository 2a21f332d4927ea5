package httpapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"keryx/client"
	"keryx/events"
)

// Config says what to serve. Conns and Addr are needed; zero fields mean the default.
type Config struct {
	// Conns are the principals that the edge acts as, by role, all of one profile. That of
	// the gateway is needed; without that of another role its tokens get no further than
	// a gateway. Their owner closes them after [Server.Stop].
	Conns map[events.Role]*client.Conn
	// Addr is host:port. Without TLS it must be on loopback.
	Addr string
	// TLS serves HTTPS with these certificates.
	TLS *tls.Config
	// Hosts are more names under which callers may reach the server, beside those of the
	// address and of the certificate: a page of a foreign name that was made to point here
	// is refused.
	Hosts []string
	// Gateways take the requests of POST /v1/gateways/{name}, by name. They check who sends
	// by themselves: no bearer token is asked for.
	Gateways map[string]http.Handler
	// RunFile, if set, is written with the URL and removed at the stop.
	RunFile string
	// RequestTime bounds a request that is no stream. Default 30 s.
	RequestTime time.Duration
	// Heartbeat is how often a silent stream says that it lives. Default 15 s.
	Heartbeat time.Duration
	// WriteTime is how long one write to a stream may take. Default 30 s.
	WriteTime time.Duration
	// BufferEvents and BufferBytes bound what is kept of a followed session for readers
	// that are a little behind. Default 1,024 and 8 MiB.
	BufferEvents, BufferBytes int
	// Streams is how many streams and polls may be open at once. Default 4,096.
	Streams int
	// Seats is how many host instances may live here at once. Default 1,024.
	Seats int
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// ErrNotLoopback says that an address without TLS could be reached from other machines.
var ErrNotLoopback = errors.New("without TLS only a loopback address is served")

func (c *Config) complete() error {
	gateway := c.Conns[events.RoleGateway]
	if gateway == nil {
		return errors.New("no connection of the role gateway")
	}
	for role, conn := range c.Conns {
		p := conn.Principal()
		if p.Role != role || p.Profile != gateway.Principal().Profile {
			return fmt.Errorf("the connection for role %s is of %s %s of profile %s", role, p.Role, p.Name, p.Profile)
		}
	}
	if c.TLS == nil && !IsLoopback(c.Addr) {
		return fmt.Errorf("%s: %w", c.Addr, ErrNotLoopback)
	}
	c.RequestTime = orDefault(c.RequestTime, 30*time.Second)
	c.Heartbeat = orDefault(c.Heartbeat, 15*time.Second)
	c.WriteTime = orDefault(c.WriteTime, 30*time.Second)
	c.BufferEvents = orDefault(c.BufferEvents, 1024)
	c.BufferBytes = orDefault(c.BufferBytes, 8<<20)
	c.Streams = orDefault(c.Streams, 4096)
	c.Seats = orDefault(c.Seats, 1024)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

func orDefault[N int | time.Duration](n, def N) N {
	if n > 0 {
		return n
	}
	return def
}

// IsLoopback reports whether host:port cannot be reached from other machines.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
