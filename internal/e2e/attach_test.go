package e2e_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestTakingOverATerminalSilencesWhoeverTypedBefore(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	id := strings.TrimSpace(b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--pty", "--size", "10x40",
		"--", "sh", "-c", `stty -echo; echo ready; while read x; do echo "<$x>"; done`))
	b.await("the output", 20*time.Second, func() bool {
		return strings.Contains(b.run("bus", "output", "cli:local", id, "--dir", b.store()), "ready")
	})
	old, oldShown, oldEnded := b.onTerminal("attach", "cli:local", id, "--type", "--dir", b.store())
	b.typed(old, oldShown, "before")
	own, shown, ended := b.onTerminal("attach", "cli:local", id, "--take-over", "--dir", b.store())
	b.typed(own, shown, "mine")
	b.await("the word to the one before", 20*time.Second, func() bool {
		return strings.Contains(oldShown.String(), "operator took control of target local") && strings.Contains(oldShown.String(), "<mine>")
	})
	if _, err := old.Write([]byte("stale\r")); err != nil {
		t.Fatal(err)
	}
	refused := b.start("", "bus", "attach", "cli:local", id, "--type", "--dir", b.store())
	if code := refused.exit(20 * time.Second); code != 1 || !strings.Contains(refused.stderr.String(), "operator has control of target local") {
		t.Errorf("typing beside exited %d: %s", code, refused.stderr)
	}
	b.typed(own, shown, "still mine")
	b.detach(own, ended)
	b.detach(old, oldEnded)
	again, againShown, againEnded := b.onTerminal("attach", "cli:local", id, "--type", "--dir", b.store())
	b.typed(again, againShown, "again")
	if strings.Contains(againShown.String(), "<stale>") {
		t.Error("what was typed after the take-over was taken")
	}
	b.detach(again, againEnded)
	if n := strings.Count(b.run("bus", "replay", "_profile", "--dir", b.store()), "target.control_changed"); n != 2 {
		t.Errorf("%d changes of control on record, want 2", n)
	}
}

// typed types a line and waits until the program has read it.
func (b *bench) typed(tty *os.File, shown *lockedBuffer, line string) {
	b.t.Helper()
	b.await("the picture", 20*time.Second, func() bool { return strings.Contains(shown.String(), "ready") })
	if _, err := tty.Write([]byte(line + "\r")); err != nil {
		b.t.Fatal(err)
	}
	b.await("what was typed", 20*time.Second, func() bool { return strings.Contains(shown.String(), "<"+line+">") })
}

// detach presses the detach key and waits for the end.
func (b *bench) detach(tty *os.File, ended <-chan error) {
	b.t.Helper()
	if _, err := tty.Write([]byte{0x1d}); err != nil {
		b.t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			b.t.Errorf("attach ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		b.t.Fatal("attach did not end")
	}
}

func TestALargePasteIsToldTruthfully(t *testing.T) {
	t.Parallel()
	b := withSession(t)
	id := strings.TrimSpace(b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--pty",
		"--", "sh", "-c", `stty -echo; echo ready; while read x; do echo "<${#x}>"; done`))
	tty, shown, ended := b.onTerminal("attach", "cli:local", id, "--type", "--dir", b.store())
	b.await("the picture", 20*time.Second, func() bool { return strings.Contains(shown.String(), "ready") })
	go func() { _, _ = tty.Write([]byte(strings.Repeat("x", 10_000) + "\r")) }()
	b.await("the word on the rest", 20*time.Second, func() bool {
		return strings.Contains(shown.String(), "<4095>") && strings.Contains(shown.String(), "[5905 bytes were not taken: the line is longer than a terminal takes]")
	})
	b.detach(tty, ended)
}
