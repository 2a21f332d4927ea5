package e2e_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
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

func TestARecordingIsPlayedByAsciinema(t *testing.T) {
	t.Parallel()
	player := asciinema(t)
	b := withSession(t)
	id := strings.TrimSpace(b.run("bus", "exec", "cli:local", "--target", "local", "--dir", b.store(), "--background", "--pty", "--size", "10x40",
		"--", "sh", "-c", `stty -echo; trap 'stty size' WINCH; echo ready; until read x; do :; done; printf 'h\303\251llo \033[1mbold\033[0m\n'; read x`))
	tty, shown, ended := b.onTerminal("attach", "cli:local", id, "--type", "--dir", b.store())
	b.await("the picture", 20*time.Second, func() bool { return strings.Contains(shown.String(), "ready") })
	for _, size := range []pty.Winsize{{Rows: 20, Cols: 70}, {Rows: 25, Cols: 81}} {
		if err := pty.Setsize(tty, &size); err != nil {
			t.Fatal(err)
		}
		b.await("the new size", 20*time.Second, func() bool { return strings.Contains(shown.String(), fmt.Sprintf("%d %d", size.Rows, size.Cols)) })
	}
	if _, err := tty.Write([]byte("\r")); err != nil {
		t.Fatal(err)
	}
	b.await("the rest", 20*time.Second, func() bool { return strings.Contains(shown.String(), "bold") })
	if _, err := tty.Write([]byte("\r")); err != nil {
		t.Fatal(err)
	}
	<-ended
	cast := filepath.Join(b.dir, "run.cast")
	out := b.run("bus", "output", "cli:local", id, "--cast", "--dir", b.store())
	if !strings.Contains(out, `"r","81x25"`) {
		t.Errorf("the change of size is not in the recording:\n%s", out)
	}
	if err := os.WriteFile(cast, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(player, "play", "--speed", "100", "--idle-time-limit", "0.01", cast)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color", "HOME="+b.dir)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 90})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var played lockedBuffer
	_, _ = io.Copy(&played, screen) // ends with EIO
	if err := cmd.Wait(); err != nil {
		t.Errorf("asciinema play: %v: %s", err, played.String())
	}
	for _, want := range []string{"ready", "25 81", "héllo", "\x1b[1mbold"} {
		if !strings.Contains(played.String(), want) {
			t.Errorf("asciinema shows %q, without %q", played.String(), want)
		}
	}
}

// asciinema returns the player, which is fetched where it is missing.
func asciinema(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("asciinema"); err == nil {
		return path
	}
	if out, err := exec.Command("../../tools/fetch-test-tools", "asciinema").CombinedOutput(); err != nil {
		t.Fatalf("fetch asciinema: %v\n%s", err, out)
	}
	path, err := exec.LookPath("asciinema")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
