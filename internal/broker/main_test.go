package broker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/internal/broker"
)

const (
	serveEnv = "KERYX_TEST_SERVE" // directory: the test binary is a second bus
	dialEnv  = "KERYX_TEST_DIAL"  // directory: the test binary asks for operator rights
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(serveEnv) != "":
		os.Exit(serveProcess(os.Getenv(serveEnv)))
	case os.Getenv(dialEnv) != "":
		os.Exit(dialProcess(os.Getenv(dialEnv)))
	}
	goleak.VerifyTestMain(m)
}

// serveProcess serves dir until its input ends.
func serveProcess(dir string) int {
	ctx := context.Background()
	b, err := broker.Start(ctx, broker.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stdout, "refused:", err)
		return 3
	}
	fmt.Fprintln(os.Stdout, "serves:", b.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := b.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stdout, "stop:", err)
		return 4
	}
	return 0
}

func dialProcess(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, err := broker.DialOperator(ctx, dir, "main")
	if err != nil {
		fmt.Fprintln(os.Stdout, "refused:", err)
		return 3
	}
	fmt.Fprintln(os.Stdout, "granted:", g.Credentials.Principal.Name)
	return 0
}

// otherBus is a bus in a process of its own.
type otherBus struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	says  string // its first line
	url   string // empty if it was refused
}

// startOther runs this test binary as a bus on dir and waits for its first line.
func startOther(t *testing.T, dir string) *otherBus {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+dir)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &otherBus{cmd: cmd, stdin: stdin}
	t.Cleanup(func() { _ = o.stdin.Close(); _ = o.cmd.Wait() }) // waited for already by most tests
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("second process said nothing: %v", err)
	}
	o.says = strings.TrimSpace(line)
	o.url, _ = strings.CutPrefix(o.says, "serves: ")
	if o.url == o.says {
		o.url = ""
	}
	return o
}

// eventually polls until ok, and fails the test after ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
