package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/cli"
	"keryx/internal/sessionlog"
)

func TestEveryErrorHasACodeAndOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			fmt.Errorf("show: %w", events.Errorf(events.CodeUnknownSession, "no session %q", "k").With("b", "2").With("a", "1")),
			`unknown_session: show: no session "k" [a=1] [b=2]`,
		},
		{&broker.HeldError{Dir: "d"}, "lease_held: bus directory d is held by another process, which is just starting"},
		{fmt.Errorf("x: %w", broker.ErrNotRunning), "unavailable: x: no bus runs on this directory"},
		{fmt.Errorf("connect: %w", nats.ErrAuthorization), "forbidden: connect: nats: authorization violation"},
		{fmt.Errorf("connect: %w", nats.ErrNoServers), "unavailable: connect: nats: no servers available for connection"},
		{&broker.ReservedError{Name: "operator"}, "forbidden: "},
		{fmt.Errorf("read f: %w", client.ErrLoosePermissions), "invalid: read f: "},
		{fmt.Errorf("write f: %w", fs.ErrExist), "invalid: write f: file already exists"},
		{&os.PathError{Op: "write", Path: "out", Err: syscall.EPIPE}, "unavailable: write out: broken pipe"},
		{context.DeadlineExceeded, "timeout: context deadline exceeded"},
		{&sessionlog.RegressedError{Dir: "d"}, "store_regressed: "},
		{errors.Join(errors.New("one"), errors.New("two")), "internal: one; two"},
	} {
		if got := cli.Message(c.err); got != c.want && (c.want[len(c.want)-1] != ' ' || len(got) <= len(c.want) || got[:len(c.want)] != c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// tree is a command that ends as asked.
func tree(end error, args ...string) (*cobra.Command, *bytes.Buffer) {
	root := &cobra.Command{Use: "tool"}
	cli.Group(root, &cobra.Command{
		Use: "do ONE", Args: cobra.ExactArgs(1),
		RunE: func(*cobra.Command, []string) error { return end },
	})
	var out bytes.Buffer
	root.SetArgs(args)
	root.SetErr(&out)
	root.SetOut(&out)
	return root, &out
}

func TestExitCodesTellUsageFromFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  error
		args []string
		code int
		out  string
	}{
		{"done", nil, []string{"do", "x"}, 0, ""},
		{"too few arguments", nil, []string{"do"}, 2, "tool: usage: accepts 1 arg(s), received 0\nSee 'tool do --help'.\n"},
		{"no such command", nil, []string{"dont"}, 2, "tool: usage: no command \"dont\" of \"tool\"\nSee 'tool --help'.\n"},
		{"a bad flag", nil, []string{"do", "x", "--y"}, 2, "tool: usage: unknown flag: --y\nSee 'tool do --help'.\n"},
		{"a usage error found late", cli.Usagef("x is %d", 1), []string{"do", "x"}, 2, "tool: usage: x is 1\nSee 'tool do --help'.\n"},
		{"a failure", errors.New("broken\x1b[2J"), []string{"do", "x"}, 1, "tool: internal: broken\\x1b[2J\n"},
		{"a quiet code", &cli.ExitError{Code: 130}, []string{"do", "x"}, 130, ""},
		{"a code with a reason", &cli.ExitError{Code: 3, Err: events.ErrOf(events.CodeBusy)}, []string{"do", "x"}, 3, "tool: busy: busy\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root, out := tree(c.end, c.args...)
			if code := cli.Main(t.Context(), root); code != c.code || out.String() != c.out {
				t.Errorf("code %d, %q; want %d, %q", code, out, c.code, c.out)
			}
		})
	}
}

func TestTablesAlignAndAreSafe(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table := cli.NewTable(&b, "KEY", "STATE")
	table.Row("a\x1b[2J\tb", "idle")
	table.Row("", "running")
	if err := table.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	const want = "KEY          STATE\na\\x1b[2J\\tb  idle\n-            running\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestStreamsThatAreNoTerminalHaveNoColorsAndNoWidth(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	for _, stream := range []any{f, &bytes.Buffer{}} {
		if cli.IsTerminal(stream) || cli.Colors(stream) || cli.Width(stream) != 0 {
			t.Errorf("%T is taken for a terminal", stream)
		}
	}
}

func TestReachingABusThatIsNotThereCreatesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/none"
	b := cli.Bus{Dir: dir, Profile: "default"}
	err := b.With(t.Context(), nil, func(*client.Conn) error { return nil })
	if cli.CodeOf(err) != events.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}
