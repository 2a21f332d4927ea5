package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"keryx/client"
	"keryx/events"
	"keryx/internal/tokens"
)

// Bounds of a connection.
const (
	headerTime = 5 * time.Second
	idleTime   = 60 * time.Second
	maxHeader  = 32 << 10
	// maxBody leaves room for what surrounds the largest data that the bus takes; beyond
	// that the bus says so itself.
	maxBody = events.MaxData + 64<<10
)

// Server serves the edge. Stop it.
type Server struct {
	cfg     Config
	http    *http.Server
	listen  net.Listener
	mux     *http.ServeMux
	routes  []route
	bearers *bearers
	feeds   *feeds
	seats   *seats
	board   *board
	streams *semaphore.Weighted

	// life is the context of everything the server does; draining ends before it, and
	// with it whatever has no end of its own.
	life, draining context.Context
	drain          context.CancelCauseFunc
	end            context.CancelCauseFunc
	work           sync.WaitGroup
	failed         chan error
}

// errStopping is why streams end when the server does.
var errStopping = events.Errorf(events.CodeUnavailable, "the edge is stopping")

// Serve listens and serves in the background until [Server.Stop]. ctx bounds the start
// alone; its values go on. The error wraps [ErrNotLoopback] for an address that needs TLS.
func Serve(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("serve the http edge: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("serve the http edge: %w", err)
	}
	if cfg.TLS != nil {
		l = tls.NewListener(l, cfg.TLS)
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	draining, drain := context.WithCancelCause(life)
	s := &Server{
		cfg: cfg, listen: l, life: life, end: end, draining: draining, drain: drain, routes: table(), failed: make(chan error, 2),
		bearers: newBearers(cfg.Conns[events.RoleGateway], cfg.Logger),
		streams: semaphore.NewWeighted(int64(cfg.Streams)),
	}
	s.feeds, s.seats, s.board = newFeeds(draining, cfg), newSeats(draining, cfg), newBoard()
	s.mux = s.router()
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return s.life },
		ErrorLog:    slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}
	if err := s.announce(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.run()
	return s, nil
}

// run starts what [Server.Stop] joins.
func (s *Server) run() {
	s.work.Go(func() {
		if err := s.bearers.run(s.life); err != nil {
			s.failed <- err
		}
	})
	s.work.Go(func() {
		if err := s.http.Serve(s.listen); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve the http edge: %w", err)
		}
	})
}

func (s *Server) announce() error {
	if s.cfg.RunFile == "" {
		return nil
	}
	if err := os.WriteFile(s.cfg.RunFile, []byte(s.URL()+"\n"), 0o600); err != nil {
		return fmt.Errorf("write run file: %w", err)
	}
	return nil
}

// URL returns where the server is reached, without a path.
func (s *Server) URL() string {
	if s.cfg.TLS != nil {
		return "https://" + s.listen.Addr().String()
	}
	return "http://" + s.listen.Addr().String()
}

// Failed delivers the error with which the server ended by itself: it has to be stopped.
func (s *Server) Failed() <-chan error { return s.failed }

// Ready returns nil while requests can be answered.
func (s *Server) Ready() error { return s.bearers.ready() }

// Stop ends the streams at once, lets the requests under way end, bounded by ctx, and
// joins all that the server began. It removes the run file.
func (s *Server) Stop(ctx context.Context) error {
	s.drain(errStopping)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop the http edge: %w", err), s.http.Close())
	}
	s.end(errStopping)
	s.work.Wait()
	s.feeds.wait()
	s.seats.wait()
	if s.cfg.RunFile != "" {
		if rmErr := os.Remove(s.cfg.RunFile); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove run file: %w", rmErr))
		}
	}
	return err
}

// connFor returns the principal that acts for a token: of its role if there is one, else
// the gateway, which the bus lets do what both may.
func (s *Server) connFor(tok tokens.Token) *client.Conn {
	if c := s.cfg.Conns[tok.Role]; c != nil {
		return c
	}
	return s.cfg.Conns[events.RoleGateway]
}
