package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/screen"
)

func newAttach(g *global) *cobra.Command {
	var typing bool
	cmd := &cobra.Command{
		Use:   "attach ID|KEY EXEC",
		Short: "Look at the terminal of an exec, and type into it with --type",
		Long: `Look at the terminal of an exec. It is painted as it is now, with its modes; the
program is not asked for anything again. With --type keys go to the program, and its
terminal takes the size of this one. Ctrl-] detaches; the program runs on.`,
		Example:           "  bus attach cli:local 01M8QTRSQ9PTFF81598C010KJM --type",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: g.execArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.running(cmd, nobodyRuns, func(ctx context.Context, c *client.Conn) error {
				return attach(ctx, cmd, c, args[0], events.ExecID(args[1]), typing)
			})
		},
	}
	cmd.Flags().BoolVar(&typing, "type", false, "send keys and size")
	return cmd
}

var errDetached = errors.New("detached")

func attach(ctx context.Context, cmd *cobra.Command, c *client.Conn, to string, exec events.ExecID, typing bool) error {
	v, err := c.Show(ctx, to)
	if err != nil {
		return err
	}
	start, err := running(ctx, c, v, exec)
	if err != nil {
		return err
	}
	var tip events.OutputPage
	if err := c.Do(ctx, events.CmdExecOutput, events.Output{Session: v.Session, Exec: exec, TipOnly: true}, &tip); err != nil {
		return err
	}
	w := &window{out: cmd.OutOrStdout(), model: screen.New(start.Spec.PTY.Rows, start.Spec.PTY.Cols), until: tip.Stored}
	defer w.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keys := &keyboard{cmd: cmd, conn: c, start: start, log: cmd.ErrOrStderr(), mute: !typing, detach: func() { cancel(errDetached) }}
	defer keys.close()
	keys.open(events.ExecAnswer{Exec: exec})
	keys.size()
	if tip.Stored == 0 {
		w.paint()
	}
	exited, err := c.Output(ctx, start.Selection.Executor, v.Session, exec, w.chunk)
	w.leave()
	keys.close()
	switch {
	case errors.Is(context.Cause(ctx), errDetached):
		return nil
	case err != nil:
		return err
	case w.err != nil:
		return fmt.Errorf("print output: %w", w.err)
	}
	return exitOf(exited)
}

// running returns what is needed to type into an exec that runs on a terminal.
func running(ctx context.Context, c *client.Conn, v events.SessionView, exec events.ExecID) (events.StartExec, error) {
	start := events.StartExec{Session: v.Session}
	for _, e := range v.Execs {
		if e.Exec != exec {
			continue
		}
		sel, err := c.SelectTarget(ctx, e.Target)
		if err != nil {
			return start, err
		}
		start.Selection = sel
		start.Selection.Executor = e.Executor
		start.Spec, err = requested(ctx, c, v.Session, exec)
		if err == nil && start.Spec.PTY == nil {
			err = cli.Usagef("exec %s has no terminal; see 'bus output --follow'", exec)
		}
		return start, err
	}
	return start, events.Errorf(events.CodeUnknownExec, "no exec %q runs for session %s", exec, v.Session)
}

// window shows a terminal: a picture of what was before, then what comes.
type window struct {
	out   io.Writer
	model *screen.Screen // nil once it was painted
	until uint64         // the last chunk that belongs to the picture
	err   error
}

func (w *window) chunk(c client.Chunk) {
	if w.model == nil {
		w.write(c.Data)
		return
	}
	if c.Number > w.until { // those before were not kept
		w.paint()
		w.write(c.Data)
		return
	}
	_, err := w.model.Write(c.Data)
	w.note(err)
	if c.Number == w.until {
		w.paint()
	}
}

func (w *window) paint() {
	w.write(w.model.Paint())
	w.close()
}

// leave leaves this terminal as a shell expects it.
func (w *window) leave() { w.write([]byte(screen.Reset + "\x1b[?25h")) }

func (w *window) close() {
	if w.model != nil {
		w.note(w.model.Close())
		w.model = nil
	}
}

func (w *window) write(b []byte) {
	_, err := w.out.Write(b)
	w.note(err)
}

func (w *window) note(err error) {
	if w.err == nil {
		w.err = err
	}
}
