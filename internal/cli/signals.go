package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signalled is the cancel cause of a context that a signal ended.
type signalled struct{ sig syscall.Signal }

func (s *signalled) Error() string { return "stopped by " + s.sig.String() }

// Interruptible runs a one-shot command that a signal ends early but cleanly: its
// context ends at the first SIGINT, SIGTERM or SIGHUP, and the second one does what it
// does by default. After a signal the error is an [*ExitError] with the signal's code.
func Interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer signal.Stop(signals)
		select {
		case s := <-signals:
			cancel(&signalled{s.(syscall.Signal)}) // all of them are
		case <-done:
		}
	}()
	err := f(ctx)
	close(done)
	<-watched
	var s *signalled
	if errors.As(context.Cause(ctx), &s) {
		if errors.Is(err, context.Canceled) || errors.As(err, new(*signalled)) {
			err = nil
		}
		return &ExitError{Code: ExitSignal + int(s.sig), Err: err}
	}
	return err
}
