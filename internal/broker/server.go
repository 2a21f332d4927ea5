package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"keryx/events"
)

const (
	// serverName is stable, because a store remembers who wrote it.
	serverName = "keryx"

	maxConnections = 4096
	writeDeadline  = 10 * time.Second
	pingInterval   = 20 * time.Second
	maxPingsOut    = 3
	// authSeconds is how long a connection may take to prove itself; the server's own
	// 2 s are short for a busy machine.
	authSeconds = 5.0
	maxMemory   = 64 << 20 // no stream of the bus is kept in memory
	// maxReserved bounds what streams may reserve together. The store is bounded by the
	// shares of the streams, which add up to Config.MaxStore; a bound of the same size
	// here would refuse to create a stream again that exists, and to shrink one (measured
	// on 2.15.3), so it is out of the way: 1 PiB.
	maxReserved  = 1 << 50
	readyTimeout = 10 * time.Second

	// A stop tells remote clients first, then closes them over the rest of the time.
	lameDuckGrace = 25 * time.Millisecond
	lameDuckTotal = 50 * time.Millisecond
)

// options returns the server's options. The package comment
// gives the reasons of those that are not obvious.
func (c Config) options(auth server.Authentication) (*server.Options, error) {
	host, port, err := c.hostPort()
	if err != nil {
		return nil, err
	}
	return &server.Options{
		ServerName: serverName, Host: host, Port: port,
		MaxConn: maxConnections, MaxPayload: events.MaxPayload, WriteDeadline: writeDeadline,
		PingInterval: pingInterval, MaxPingsOut: maxPingsOut, AuthTimeout: authSeconds,
		NoSigs: true, NoLog: true,

		CustomClientAuthentication: auth, AlwaysEnableNonce: true,

		JetStream: true, StoreDir: filepath.Join(c.Dir, "store"), DisableJetStreamBanner: true,
		JetStreamMaxStore: maxReserved, JetStreamMaxMemory: maxMemory,
		JetStreamLimits: server.JSLimitOpts{DefaultMaxConsumers: -1},
		SyncAlways:      c.Sync == SyncAlways, SyncInterval: syncEvery,

		LameDuckDuration: lameDuckTotal, LameDuckGracePeriod: lameDuckGrace,
	}, nil
}

// startServer returns a server that accepts connections and has recovered its store.
func startServer(ctx context.Context, c Config, auth server.Authentication) (*server.Server, error) {
	opts, err := c.options(auth)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	debug := c.Logger.Enabled(ctx, slog.LevelDebug)
	log := &serverLogger{l: c.Logger}
	s.SetLoggerV2(log, debug, false, false)
	s.Start()
	if err := awaitReady(s, log); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("start server on %s: %w", c.Listen, err)
	}
	return s, nil
}

// awaitReady does not wait for a server that has given up.
func awaitReady(s *server.Server, log *serverLogger) error {
	if why := log.fatal.Load(); why != nil {
		return errors.New(*why)
	}
	if !s.ReadyForConnections(readyTimeout) {
		return fmt.Errorf("not ready within %v", readyTimeout)
	}
	if !s.JetStreamEnabled() {
		return errors.New("the store could not be opened")
	}
	return nil
}

// serverURL returns where a client on this machine reaches s.
func serverURL(s *server.Server) string {
	addr, ok := s.Addr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(addr.Port))
}
