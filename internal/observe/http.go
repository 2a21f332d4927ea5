package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// HTTPConfig says where to serve. Addr is needed.
type HTTPConfig struct {
	// Addr is host:port on loopback; port 0 picks a free one.
	Addr string
	// Ready returns nil when the process can do its work, else why not. Nil means
	// always ready. It must return soon.
	Ready func() error
	// RunFile, if set, is written with the URL and removed at the stop.
	RunFile string
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Bounds of a request.
const (
	requestTime = 5 * time.Second
	idleTime    = 30 * time.Second
	maxHeader   = 8 << 10
)

// ErrNotLoopback says that an address could be reached from other machines.
var ErrNotLoopback = errors.New("not a loopback address")

// Server answers /healthz and /readyz. Stop it.
type Server struct {
	http    *http.Server
	listen  net.Listener
	runFile string
	done    chan struct{}
	err     error // why serving ended; set before done is closed
}

// Serve listens and serves in the background until [Server.Stop]. The error wraps
// [ErrNotLoopback] for an address of other machines.
func Serve(ctx context.Context, cfg HTTPConfig) (*Server, error) {
	if err := checkLoopback(cfg.Addr); err != nil {
		return nil, fmt.Errorf("serve http on %q: %w", cfg.Addr, err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("serve http: %w", err)
	}
	s := &Server{listen: l, runFile: cfg.RunFile, done: make(chan struct{}), http: &http.Server{
		Handler:           http.TimeoutHandler(handler(cfg.Ready), requestTime, "timeout\n"),
		ReadHeaderTimeout: requestTime, ReadTimeout: requestTime, WriteTimeout: 2 * requestTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}}
	if err := s.announce(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("serve http: %w", err)
		}
	}()
	return s, nil
}

func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ErrNotLoopback
	}
	return nil
}

func (s *Server) announce() error {
	if s.runFile == "" {
		return nil
	}
	if err := os.WriteFile(s.runFile, []byte(s.URL()+"\n"), 0o600); err != nil {
		return fmt.Errorf("write run file: %w", err)
	}
	return nil
}

// URL returns where the server is reached, without a path.
func (s *Server) URL() string { return "http://" + s.listen.Addr().String() }

// Stop ends the server and waits for it; ctx bounds the requests under way. It removes
// the run file and is idempotent.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop http: %w", err), s.http.Close())
	}
	<-s.done
	if s.runFile != "" {
		if rmErr := os.Remove(s.runFile); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove run file: %w", rmErr))
		}
	}
	return errors.Join(err, s.err)
}

func handler(ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready == nil {
			answer(w, nil)
			return
		}
		answer(w, ready())
	})
	return mux
}

func answer(w http.ResponseWriter, why error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	text := "ok"
	if why != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = why.Error()
	}
	_, _ = fmt.Fprintln(w, text) // a caller that has gone needs no answer
}
