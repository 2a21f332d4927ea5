package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/asciicast"
	"keryx/internal/cli"
)

type outputFlags struct {
	from         int64
	cast, follow bool
	offline      bool // nothing that runs can go on
}

func newOutput(g *global) *cobra.Command {
	var f outputFlags
	cmd := &cobra.Command{
		Use:   "output ID|KEY EXEC",
		Short: "Show the output of an exec",
		Long: `Show the output of an exec, as far as the bus has it. What it has not is said on
standard error. --cast makes a recording in the format asciicast v2 of it, which
'asciinema play' plays.`,
		Example: `  bus output cli:local 01M8QTRSQ9PTFF81598C010KJM
  bus output cli:local 01M8QTRSQ9PTFF81598C010KJM --cast > run.cast`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: g.execArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.from < 0 {
				return cli.Usagef("--from is not negative")
			}
			if f.cast && f.from > 0 {
				return cli.Usagef("a recording begins at the beginning: --from does not go with --cast")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				f.offline = g.bus.Offline()
				goesOn, err := f.run(ctx, cmd, c, args[0], events.ExecID(args[1]))
				if err == nil && goesOn && f.follow && f.offline {
					return g.bus.NotRunning("this is all of the output so far")
				}
				return err
			})
		},
	}
	cmd.Flags().Int64Var(&f.from, "from", 0, "first byte to show, in each stream")
	cmd.Flags().BoolVar(&f.cast, "cast", false, "make a recording (asciicast v2)")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until the exec ends")
	return cmd
}

// run shows the output and reports whether the exec had not ended.
func (f *outputFlags) run(ctx context.Context, cmd *cobra.Command, c *client.Conn, to string, exec events.ExecID) (bool, error) {
	scope, err := sessionScope(ctx, c, to)
	if err != nil {
		return false, err
	}
	show, finish, err := f.printer(ctx, cmd, c, scope, exec)
	if err != nil {
		return false, err
	}
	if scope.Imported() { // it does not go on
		return false, errors.Join(c.KeptOutput(ctx, scope, exec, show), finish())
	}
	v, err := c.Show(ctx, to)
	if err != nil {
		return false, err
	}
	if err := f.read(ctx, c, v, exec, show); err != nil {
		return false, err
	}
	return runs(v, exec), finish()
}

// printer returns what prints chunks and what ends that.
func (f *outputFlags) printer(ctx context.Context, cmd *cobra.Command, c *client.Conn, s events.Scope, exec events.ExecID) (func(client.Chunk), func() error, error) {
	if f.cast {
		return recorder(ctx, cmd.OutOrStdout(), c, s, exec)
	}
	out := &streams{cmd: cmd, raw: !cli.IsTerminal(cmd.OutOrStdout())}
	return func(ch client.Chunk) { out.chunk(from(ch, f.from)) }, func() error { return out.err }, nil
}

// from cuts what is before an offset.
func from(c client.Chunk, offset int64) client.Chunk {
	if skip := offset - c.Offset; skip > 0 {
		c.Data, c.Offset = c.Data[min(skip, int64(len(c.Data))):], offset
		c.Missing = 0
	}
	return c
}

// errSoFar ends the reading of an exec that runs, at what is stored.
var errSoFar = errors.New("that is all so far")

func (f *outputFlags) read(ctx context.Context, c *client.Conn, v events.SessionView, exec events.ExecID, show func(client.Chunk)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	last := ^uint64(0)
	if (!f.follow || f.offline) && runs(v, exec) {
		var tip events.OutputPage
		if err := c.Do(ctx, events.CmdExecOutput, events.Output{Session: v.Session, Exec: exec, TipOnly: true}, &tip); err != nil {
			return err
		}
		if last = tip.Stored; last == 0 {
			return nil
		}
	}
	_, err := c.Output(ctx, "", v.Session, exec, func(ch client.Chunk) {
		if ch.Number > last {
			return
		}
		show(ch)
		if ch.Number == last {
			cancel(errSoFar)
		}
	})
	if errors.Is(context.Cause(ctx), errSoFar) {
		return nil
	}
	return err
}

func runs(v events.SessionView, exec events.ExecID) bool {
	for _, e := range v.Execs {
		if e.Exec == exec {
			return true
		}
	}
	return false
}

// recorder makes a recording of chunks.
func recorder(ctx context.Context, w io.Writer, c *client.Conn, s events.Scope, exec events.ExecID) (func(client.Chunk), func() error, error) {
	spec, err := requested(ctx, c, s, exec)
	if err != nil {
		return nil, nil, err
	}
	r := &recording{w: w, argv: spec.Argv, size: events.PTYSize{Rows: 24, Cols: 80}}
	if spec.PTY != nil {
		r.size = *spec.PTY
	}
	return r.chunk, r.close, nil
}

// recording is an asciicast of chunks.
type recording struct {
	w    io.Writer
	argv []string
	size events.PTYSize
	cast *asciicast.Writer // nil before the first chunk
	err  error
}

func (r *recording) chunk(ch client.Chunk) {
	if r.err != nil {
		return
	}
	if r.cast == nil {
		r.begin(ch)
	}
	if size := (events.PTYSize{Rows: ch.Rows, Cols: ch.Cols}); ch.Rows > 0 && size != r.size {
		r.size = size
		r.note(r.cast.Resize(ch.Time, size.Rows, size.Cols))
	}
	if ch.Missing > 0 {
		r.note(r.cast.Output(ch.Time, fmt.Appendf(nil, "\r\n[... %d bytes were not kept ...]\r\n", ch.Missing)))
	}
	r.note(r.cast.Output(ch.Time, ch.Data))
}

// begin writes the header, with the size at the first chunk that there is.
func (r *recording) begin(ch client.Chunk) {
	if ch.Rows > 0 {
		r.size = events.PTYSize{Rows: ch.Rows, Cols: ch.Cols}
	}
	var err error
	r.cast, err = asciicast.New(r.w, asciicast.Header{
		Width: r.size.Cols, Height: r.size.Rows, Start: ch.Time, Command: strings.Join(r.argv, " "),
	})
	r.note(err)
}

func (r *recording) note(err error) { r.err = errors.Join(r.err, err) }

func (r *recording) close() error {
	if r.err != nil || r.cast == nil {
		return r.err
	}
	return r.cast.Close()
}

// requested finds what was asked for.
func requested(ctx context.Context, c *client.Conn, s events.Scope, exec events.ExecID) (events.ExecSpec, error) {
	for from := events.Sequence(0); ; {
		page, err := c.Page(ctx, s, from, 0)
		if err != nil {
			return events.ExecSpec{}, err
		}
		for _, r := range page.Records {
			if r.Type != events.TypeExecRequested {
				continue
			}
			if d, err := events.DataOf[events.ExecRequested](r); err == nil && d.Exec == exec {
				return d.Spec, nil
			}
		}
		if page.Next == 0 {
			return events.ExecSpec{}, events.Errorf(events.CodeUnknownExec, "the record of %s has no exec %q", s, exec)
		}
		from = page.Next
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
