package broker_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keryx/internal/broker"
	"keryx/internal/bustest"
)

func TestSecondProcessOnADirectoryIsRefusedNamingTheHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := startOther(t, dir)
	if other.url == "" {
		t.Fatalf("second process: %s", other.says)
	}
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir})
	if err == nil {
		_ = b.Stop(t.Context())
		t.Fatal("two processes serve one directory")
	}
	var held *broker.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v, want a HeldError", err)
	}
	if held.PID != other.cmd.Process.Pid || held.URL != other.url || held.Dir != dir {
		t.Errorf("holder is %+v, want process %d at %s", held, other.cmd.Process.Pid, other.url)
	}
	if age := time.Since(held.Since); age < 0 || age > time.Minute {
		t.Errorf("held since %v, want a moment ago", held.Since)
	}
}

func TestProcessIsRefusedWhileThisOneServesAndTakesOverAfterIt(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	if other := startOther(t, b.Dir()); !strings.Contains(other.says, "held by process") {
		t.Errorf("second process said %q, want that the directory is held", other.says)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if other := startOther(t, b.Dir()); other.url == "" {
		t.Errorf("after the stop a second process said %q", other.says)
	}
}

func TestDirectoryOfAKilledProcessIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := startOther(t, dir)
	if err := other.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := other.cmd.Wait(); err == nil {
		t.Fatal("the killed process ended well")
	}
	if _, err := broker.DialOperator(t.Context(), dir, "main"); !errors.Is(err, broker.ErrNotRunning) {
		t.Errorf("dial at a killed bus: %v, want ErrNotRunning", err)
	}
	b := bustest.Broker(t, bustest.Dir(dir))
	g, err := broker.DialOperator(t.Context(), dir, "main")
	if err != nil {
		t.Fatalf("dial at its successor: %v", err)
	}
	if g.URL != b.URL() {
		t.Errorf("grant is for %s, want %s", g.URL, b.URL())
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// A child that a killed bus had just forked holds the lock until it executes its program.
func TestLockThatOutlivesAKilledHolderForAMomentIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(dir + "/store.lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(f, `{"pid":%d,"since":"2020-01-01T00:00:00Z"}`, dead.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	letGo := make(chan error, 1)
	time.AfterFunc(150*time.Millisecond, func() { letGo <- f.Close() })
	bustest.Broker(t, bustest.Dir(dir))
	if err := <-letGo; err != nil {
		t.Fatal(err)
	}
}

func TestStaleHolderNoteIsNotMistakenForALock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	note := []byte(`{"pid":1,"since":"2020-01-01T00:00:00Z"}` + strings.Repeat(" ", 400))
	if err := os.WriteFile(dir+"/store.lock", note, 0o600); err != nil {
		t.Fatal(err)
	}
	bustest.Broker(t, bustest.Dir(dir))
}
