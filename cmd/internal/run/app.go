package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"keryx/internal/cli"
)

// Bounds of an app.
const (
	// StartTimeout bounds the start, connecting included.
	StartTimeout = 60 * time.Second
	// StopTimeout bounds the clean stop: turns are given time to end.
	StopTimeout = 45 * time.Second
)

// Config says how an app reacts. The zero value obeys every signal.
type Config struct {
	// Interrupt is called for a SIGINT while the app runs. If it returns true the
	// signal is spent, else a clean stop begins.
	Interrupt func() bool
	// Force is called before the process ends at once, e.g. to restore a terminal.
	Force func()
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// app is an fx app with its signals.
type app struct {
	cfg     Config
	fx      *fx.App
	end     *end
	signals chan os.Signal
}

// App starts the options' services, runs until one ends or a signal comes, and stops
// them. It returns the first service's error, an [*cli.ExitError] for a code other
// than 1, or what went wrong with start or stop.
func App(ctx context.Context, cfg Config, opts ...fx.Option) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	a := &app{cfg: cfg, end: newEnd(), signals: make(chan os.Signal, 4)}
	signal.Notify(a.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(a.signals)
	// Caught and left alone: writing to a closed pipe is then an error of the write, and
	// commands that are started do not inherit an ignored signal.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	all := append([]fx.Option{
		fx.StartTimeout(StartTimeout), fx.StopTimeout(StopTimeout), fx.Supply(a.end),
		fx.WithLogger(func() fxevent.Logger {
			l := &fxevent.SlogLogger{Logger: cfg.Logger}
			l.UseLogLevel(slog.LevelDebug)
			l.UseErrorLevel(slog.LevelDebug) // the errors come back from Start and Stop
			return l
		}),
	}, opts...)
	a.fx = fx.New(all...)
	if err := a.fx.Err(); err != nil {
		return fmt.Errorf("put together: %w", err)
	}
	return a.run(ctx)
}

func (a *app) run(ctx context.Context) error {
	sig, err := a.start(ctx)
	if err != nil {
		return errors.Join(a.end.reason(), unwrapped(err))
	}
	code := 0
	if sig == nil {
		sig, code = a.wait(ctx)
	}
	err = a.stop(ctx)
	if failed := a.end.reason(); failed != nil {
		return failed
	}
	switch {
	case err != nil:
		return err
	case sig != nil && a.cfg.Interrupt != nil: // a chat that was broken off
		return &cli.ExitError{Code: cli.ExitSignal + int(*sig)}
	case code != 0:
		return &cli.ExitError{Code: code}
	}
	return nil
}

// start starts the app; a signal meanwhile ends the start.
func (a *app) start(ctx context.Context) (*syscall.Signal, error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- a.fx.Start(ctx) }()
	select {
	case err := <-started:
		return nil, err
	case s := <-a.signals:
		sig := s.(syscall.Signal) // all of them are
		cancel()
		if err := a.bounded(started); err != nil {
			return &sig, &cli.ExitError{Code: cli.ExitSignal + int(sig)}
		}
		return &sig, nil
	}
}

// wait returns at the signal that begins the stop, or when a service has ended. fx sees
// the same signals and reports them as its own end with code 0; that is not one.
func (a *app) wait(ctx context.Context) (*syscall.Signal, int) {
	asked := a.fx.Wait()
	for {
		select {
		case s := <-asked:
			if s.ExitCode != 0 {
				return nil, s.ExitCode
			}
		case <-a.end.begun:
			return nil, 0
		case <-ctx.Done():
			return nil, 0
		case s := <-a.signals:
			sig := s.(syscall.Signal)
			if sig == syscall.SIGINT && a.cfg.Interrupt != nil && a.cfg.Interrupt() {
				continue
			}
			a.cfg.Logger.Info("stopping", "signal", sig.String())
			return &sig, 0
		}
	}
}

func (a *app) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- a.fx.Stop(ctx) }()
	if err := a.bounded(stopped); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// bounded waits for the end of a start or stop; a signal meanwhile ends the process.
func (a *app) bounded(done <-chan error) error {
	select {
	case err := <-done:
		return err
	case s := <-a.signals:
		if a.cfg.Force != nil {
			a.cfg.Force()
		}
		os.Exit(cli.ExitSignal + int(s.(syscall.Signal)))
		return nil
	}
}

// unwrapped returns the error of the hook that failed, without fx's words around it.
func unwrapped(err error) error {
	var exit *cli.ExitError
	if errors.As(err, &exit) {
		return exit
	}
	return err
}
