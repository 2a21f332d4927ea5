package observe

import (
	"context"

	"go.uber.org/fx"
)

// Module serves an [HTTPConfig] for as long as the app runs; an empty Addr serves
// nothing.
var Module = fx.Module("observe", fx.Invoke(serve))

func serve(lc fx.Lifecycle, cfg HTTPConfig) {
	if cfg.Addr == "" {
		return
	}
	var s *Server
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) (err error) {
			s, err = Serve(ctx, cfg)
			return err
		},
		OnStop: func(ctx context.Context) error { return s.Stop(ctx) },
	})
}
