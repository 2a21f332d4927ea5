package services

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/cmd/internal/run"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/httpapi"
)

// EdgeFlags are the flags of the HTTP edge.
type EdgeFlags struct {
	Addr      string
	cert, key string
	hosts     []string
}

// Flags adds the flags, with a default address.
func (f *EdgeFlags) Flags(cmd *cobra.Command, addr string) {
	fs := cmd.Flags()
	fs.StringVar(&f.Addr, "api", addr, "host:port of the HTTP API; without TLS on loopback only; empty for none")
	fs.StringVar(&f.cert, "api-cert", "", "certificate file (PEM) to serve the API over TLS; needs --api-key")
	fs.StringVar(&f.key, "api-key", "", "key file of --api-cert")
	fs.StringSliceVar(&f.hosts, "api-host", nil, "another host name under which callers may reach the API, e.g. that of a proxy")
}

// Config returns the edge's configuration, without connections.
func (f *EdgeFlags) Config(log *slog.Logger) (httpapi.Config, error) {
	cfg := httpapi.Config{Addr: f.Addr, Hosts: f.hosts, Logger: log}
	if (f.cert == "") != (f.key == "") {
		return cfg, cli.Usagef("--api-cert and --api-key go together")
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return cfg, &cli.UsageError{Err: fmt.Errorf("--api-cert: %w", err)}
		}
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if f.Addr != "" && cfg.TLS == nil && !httpapi.IsLoopback(f.Addr) {
		return cfg, &cli.UsageError{Err: fmt.Errorf("--api %s: %w", f.Addr, httpapi.ErrNotLoopback)}
	}
	return cfg, nil
}

// edgeStop bounds how long requests under way may take at the stop.
const edgeStop = 10 * time.Second

// Edge serves the HTTP edge with a connection per role; that of the gateway is needed. An
// empty address serves nothing. announce is told the URL once it is served.
func Edge(dials map[events.Role]Dial, cfg httpapi.Config, announce func(url string)) *run.Principal {
	return &run.Principal{Name: "http api", Dial: dials[events.RoleGateway], Serve: func(ctx context.Context, c *client.Conn) error {
		if cfg.Addr == "" {
			<-ctx.Done()
			return nil
		}
		return serveEdge(ctx, c, dials, cfg, announce)
	}}
}

func serveEdge(ctx context.Context, gateway *client.Conn, dials map[events.Role]Dial, cfg httpapi.Config, announce func(string)) (err error) {
	cfg.Conns = map[events.Role]*client.Conn{events.RoleGateway: gateway}
	for role, dial := range dials {
		if role == events.RoleGateway {
			continue
		}
		c, err := dial(ctx)
		if err != nil {
			return fmt.Errorf("connect as %s: %w", role, err)
		}
		cfg.Conns[role] = c
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	s, err := httpapi.Serve(ctx, cfg)
	if err != nil {
		return err
	}
	announce(s.URL())
	select {
	case err = <-s.Failed():
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), edgeStop)
	defer cancel()
	return errors.Join(err, s.Stop(stopping))
}
