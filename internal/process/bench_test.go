package process_test

import (
	"os/exec"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"keryx/internal/process"
)

// bulk is how much a terminal shows in the benchmarks.
const bulk = 64 << 20

const bulkScript = "stty raw; head -c 67108864 /dev/zero"

// BenchmarkTerminalBulk is to be compared with BenchmarkTerminalDirect.
func BenchmarkTerminalBulk(b *testing.B) {
	b.SetBytes(bulk)
	for b.Loop() {
		total := 0
		p, err := process.Start(b.Context(), process.Spec{
			Argv: sh(bulkScript), Env: env(), Terminal: &process.Size{Rows: 24, Cols: 80},
			Output: func(_ process.Stream, piece []byte) { total += len(piece) },
		})
		if err != nil {
			b.Fatal(err)
		}
		if p.Wait(); total != bulk {
			b.Fatalf("%d bytes came", total)
		}
	}
}

func BenchmarkTerminalDirect(b *testing.B) {
	b.SetBytes(bulk)
	buf := make([]byte, process.MaxRead)
	for b.Loop() {
		cmd := exec.Command("/bin/sh", "-c", bulkScript)
		tty, err := pty.Start(cmd)
		if err != nil {
			b.Fatal(err)
		}
		total := 0
		for {
			n, err := tty.Read(buf)
			total += n
			if err != nil {
				break // EIO: the end
			}
		}
		if err := cmd.Wait(); err != nil || total != bulk {
			b.Fatalf("%d bytes came, %v", total, err)
		}
		_ = tty.Close()
	}
}

// BenchmarkRun starts and ends a command, in a group and by search, and as os/exec does.
func BenchmarkRun(b *testing.B) {
	g, err := process.OpenGroups("bench", "one")
	if err == nil {
		defer g.Close()
	}
	for name, groups := range map[string]*process.Groups{"in a group": g, "by search": nil} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := process.Start(b.Context(), process.Spec{Argv: []string{"/bin/true"}, Groups: groups, Group: "tree"})
				if err != nil {
					b.Fatal(err)
				}
				p.Wait()
			}
		})
	}
	b.Run("os/exec", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
