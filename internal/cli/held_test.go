package cli_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/cli"
	"keryx/internal/node"
)

// TestASecondReaderWaitsForTheStoreAndThenSaysWhoHoldsIt opens a store at rest twice.
func TestASecondReaderWaitsForTheStoreAndThenSaysWhoHoldsIt(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	b := cli.Bus{Dir: t.TempDir(), Profile: "default"}
	first := func() (done func() error) {
		_, done, err := node.OpenOffline(t.Context(), b.Dir, "default", log)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return done
	}
	read := func() (time.Duration, error) {
		begun := time.Now()
		err := b.With(t.Context(), log, func(c *client.Conn) error {
			for _, err := range c.Sessions(context.WithoutCancel(t.Context()), events.SessionList{}) {
				return err
			}
			return nil
		})
		return time.Since(begun), err
	}
	done := first()
	took, err := read()
	var held *broker.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() || !strings.Contains(cli.Message(err), "is held by process") {
		t.Errorf("a store that stays held: %v", err)
	}
	if took < 4*time.Second || took > 9*time.Second {
		t.Errorf("waited %v, about 5 s is right", took)
	}
	released := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { released <- done() })
	if took, err := read(); err != nil || took < 200*time.Millisecond {
		t.Errorf("a store that is released: %v after %v", err, took)
	}
	if err := <-released; err != nil {
		t.Errorf("close: %v", err)
	}
}
