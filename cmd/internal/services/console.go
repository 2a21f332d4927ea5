package services

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"keryx/internal/cli"
	"keryx/internal/gateway"
	"keryx/internal/termtext"
)

// Console is where a conversation is held: a terminal, or pipes. Close it.
type Console struct {
	Conversation gateway.Conversation
	// Log is where log lines go without spoiling the conversation.
	Log io.Writer
	// Surface names it in the session.
	Surface string
	// Interrupt is what a SIGINT does, see [run.Config].
	Interrupt func() bool
	// Restore puts the terminal back before the process ends at once.
	Restore func()

	close func() error
}

// Close restores the terminal.
func (c *Console) Close() error { return c.close() }

// OpenConsole opens the command's standard streams: as a terminal if input and output
// both are one, as pipes otherwise.
func OpenConsole(cmd *cobra.Command) (*Console, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok {
		return nil, errors.New("open console: standard input is not a file")
	}
	if cli.IsTerminal(in) && cli.IsTerminal(cmd.OutOrStdout()) {
		return terminal(cmd, in)
	}
	input, err := gateway.NewInput(in)
	if err != nil {
		return nil, err
	}
	p := &gateway.Pipe{In: input, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
	if cli.IsTerminal(p.Out) {
		p.Out = &safeReplies{filter: termtext.NewFilter(p.Out)}
	}
	return &Console{
		Conversation: p, Log: cmd.ErrOrStderr(), Surface: "pipe",
		Interrupt: p.Interrupt, Restore: func() {}, close: input.Close,
	}, nil
}

func terminal(cmd *cobra.Command, in *os.File) (*Console, error) {
	out := cmd.OutOrStdout()
	t, err := gateway.OpenTerminal(in, out.(*os.File), cli.Colors(out))
	if err != nil {
		return nil, err
	}
	restore := func() {
		if err := t.Restore(); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), err)
		}
	}
	return &Console{
		Conversation: t, Log: t.Log(), Surface: "terminal",
		Interrupt: t.Interrupt, Restore: restore, close: t.Close,
	}, nil
}

// safeReplies makes each whole reply safe for a terminal.
type safeReplies struct{ filter *termtext.Filter }

// Write implements io.Writer.
func (s *safeReplies) Write(p []byte) (int, error) {
	n, err := s.filter.Write(p)
	return n, errors.Join(err, s.filter.Flush())
}
