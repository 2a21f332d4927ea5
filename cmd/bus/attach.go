package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/screen"
)

type attachFlags struct{ typing, takeOver bool }

func newAttach(g *global) *cobra.Command {
	var f attachFlags
	cmd := &cobra.Command{
		Use:   "attach ID|KEY EXEC",
		Short: "Look at the terminal of an exec, type with --type, take it over with --take-over",
		Long: `Look at the terminal of an exec. It is painted as it is now, with its modes; the
program is not asked for anything again. Any number may look on. Ctrl-] detaches; the
program runs on.

With --type keys go to the program, and its terminal takes the size of this one. What the
terminal does not take of a paste is said. While somebody has control of the target,
--type is refused.

With --take-over this terminal gets control of the target: whoever typed into it before,
hosts too, cannot any more, is told so, and has to select the target anew once control
was given back, which detaching does. It is on record (target.control_changed).`,
		Example: `  bus attach cli:local 01M8QTRSQ9PTFF81598C010KJM --type
  bus attach cli:local 01M8QTRSQ9PTFF81598C010KJM --take-over`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: g.execArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.running(cmd, nobodyRuns, func(ctx context.Context, c *client.Conn) error {
				return f.attach(ctx, cmd, c, args[0], events.ExecID(args[1]))
			})
		},
	}
	cmd.Flags().BoolVar(&f.typing, "type", false, "send keys and size")
	cmd.Flags().BoolVar(&f.takeOver, "take-over", false, "take control from whoever types now; implies --type")
	return cmd
}

var errDetached = errors.New("detached")

// giveBackFor is how long giving control back may take.
const giveBackFor = 5 * time.Second

func (f *attachFlags) attach(ctx context.Context, cmd *cobra.Command, c *client.Conn, to string, exec events.ExecID) (err error) {
	v, err := c.Show(ctx, to)
	if err != nil {
		return err
	}
	since, err := profileTip(ctx, c)
	if err != nil {
		return err
	}
	start, err := running(ctx, c, v, exec)
	if err != nil {
		return err
	}
	if err := f.control(ctx, c, &start); err != nil {
		return err
	}
	if f.takeOver {
		defer func() { err = errors.Join(err, giveBack(ctx, c, start.Selection)) }()
	}
	return f.show(ctx, cmd, c, start, exec, since)
}

// control makes sure that what is typed will be taken.
func (f *attachFlags) control(ctx context.Context, c *client.Conn, start *events.StartExec) error {
	sel := start.Selection
	switch {
	case f.takeOver:
		now, err := c.ControlTarget(ctx, events.ControlTarget{Name: sel.Target})
		if err != nil {
			return err
		}
		if now.Executor != sel.Executor || now.Instance != sel.Instance {
			return errors.Join(events.Errorf(events.CodeStaleSelection, "target %s went to executor %s meanwhile", sel.Target, now.Executor), giveBack(ctx, c, now))
		}
		start.Selection = now
	case f.typing && sel.Controller != "":
		return events.Errorf(events.CodeStaleSelection, "%s has control of target %s; --take-over takes it", sel.Controller, sel.Target)
	}
	return nil
}

func giveBack(ctx context.Context, c *client.Conn, sel events.Selection) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackFor)
	defer cancel()
	_, err := c.ControlTarget(ctx, events.ControlTarget{Name: sel.Target, Release: true, AccessEpoch: sel.AccessEpoch})
	if err != nil {
		return fmt.Errorf("give control of target %s back: %w", sel.Target, err)
	}
	return nil
}

// show shows the terminal until it ends or is detached from.
func (f *attachFlags) show(ctx context.Context, cmd *cobra.Command, c *client.Conn, start events.StartExec, exec events.ExecID, since events.Sequence) error {
	var tip events.OutputPage
	if err := c.Do(ctx, events.CmdExecOutput, events.Output{Session: start.Session, Exec: exec, TipOnly: true}, &tip); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keys := &keyboard{
		cmd: cmd, conn: c, start: start, notes: newNotes(cmd.ErrOrStderr()), mute: !f.typing && !f.takeOver,
		detach: func() { cancel(errDetached) },
	}
	defer keys.close()
	keys.open(events.ExecAnswer{Exec: exec})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() { keys.watch(ctx, since) })
	w := f.window(cmd, keys, start, tip.Stored)
	keys.size()
	if tip.Stored == 0 {
		w.paint()
	}
	exited, err := c.Output(ctx, start.Selection.Executor, start.Session, exec, w.chunk)
	printed := w.leave()
	keys.close()
	switch {
	case errors.Is(context.Cause(ctx), errDetached):
		return nil
	case err != nil:
		return err
	case printed != nil:
		return fmt.Errorf("print output: %w", printed)
	}
	return exitOf(exited)
}

// window makes the picture as large as the terminal will be: that of whoever types.
func (f *attachFlags) window(cmd *cobra.Command, k *keyboard, start events.StartExec, until uint64) *window {
	size := *start.Spec.PTY
	w := &window{out: cmd.OutOrStdout(), until: until, model: screen.New(size.Rows, size.Cols)}
	rows, _, ok := cli.Size(cmd.OutOrStdout())
	if !ok || k.before == nil {
		return w
	}
	w.rows, w.hint = rows, " looking on; Ctrl-] detaches "
	if !k.mute {
		w.hint = " keys go to the program; Ctrl-] detaches "
	}
	return w
}

// profileTip is the sequence of the newest event of the profile's own record; 0 for none.
func profileTip(ctx context.Context, c *client.Conn) (events.Sequence, error) {
	tips, err := c.Tips(ctx, events.ScopeProfile)
	if err != nil || len(tips) == 0 {
		return 0, err
	}
	return tips[0].Sequence, nil
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
		start.Spec, err = requested(ctx, c, v.Session.Scope(), exec)
		if err == nil && start.Spec.PTY == nil {
			err = cli.Usagef("exec %s has no terminal; see 'bus output --follow'", exec)
		}
		return start, err
	}
	return start, events.Errorf(events.CodeUnknownExec, "no exec %q runs for session %s", exec, v.Session)
}
