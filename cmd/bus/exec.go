package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/termtext"
)

// maxStdin is how much standard input a command can be given.
const maxStdin = 256 << 10

// nobodyRuns is why what is about running commands needs a running bus.
const nobodyRuns = "no executor is there; start one with 'bus up', or 'bus serve' and 'executor'"

type execFlags struct {
	target, cwd, size, outlives               string
	pty, background, login, exact, stdin, ask bool
	timeout, grace                            time.Duration
	set, unset                                []string
}

func newExec(g *global) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec ID|KEY --target T -- ARGV...",
		Short: "Run a command in a target for a session",
		Long: `Run a command in a target for a session, and show its output as it comes.

The exit code is the command's own, 128 and the number for one that a signal ended, 124
after --timeout. Ctrl-C stops the command and waits for its end. With --pty on a terminal
every key goes to the command, Ctrl-C too, and the size follows.

--background prints the exec's id and returns; the session is told of the end.`,
		Example: `  bus exec cli:local --target local -- make test
  bus exec cli:local --target local --pty -- htop
  bus exec cli:local --target local --background --timeout 1h -- ./serve`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := f.spec(cmd, args[1:])
			if err != nil {
				return err
			}
			return g.running(cmd, nobodyRuns, func(ctx context.Context, c *client.Conn) error {
				return f.run(ctx, cmd, g, c, args[0], spec)
			})
		},
	}
	f.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("target", // fails only for a flag that is not there
		func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return g.targetArg(cmd, nil, prefix)
		})
	return cmd
}

func (f *execFlags) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.target, "target", "", "target to run in (required)")
	fs.BoolVar(&f.pty, "pty", false, "run on a terminal")
	fs.StringVar(&f.size, "size", "", "ROWSxCOLS of the terminal; default: this one's, else 24x80")
	fs.BoolVar(&f.background, "background", false, "do not wait; the session is told of the end")
	fs.DurationVar(&f.timeout, "timeout", 0, "stop it after so long; 0: never")
	fs.DurationVar(&f.grace, "grace", 5*time.Second, "time from TERM to KILL at a stop; 0: KILL at once")
	fs.StringArrayVar(&f.set, "env", nil, "K=V: set a variable")
	fs.StringArrayVar(&f.unset, "unset", nil, "K: take a variable away")
	fs.StringVar(&f.cwd, "cwd", "", "absolute directory; default: the target's")
	fs.BoolVar(&f.login, "login", false, "run the login files of the target's shell first")
	fs.BoolVar(&f.exact, "exact", false, "give it the variables of --env and no others")
	fs.StringVar(&f.outlives, "outlives", "", "epoch or session: a reset of the session stops it, or it runs on until the session ends; default: epoch")
	complete(cmd, "outlives", cobra.FixedCompletions([]string{string(events.OutlivesEpoch), string(events.OutlivesSession)}, cobra.ShellCompDirectiveNoFileComp))
	fs.BoolVar(&f.ask, "ask", false, "wait for somebody's approval, where the target's policy leaves that open")
	fs.BoolVar(&f.stdin, "stdin", false, "give it standard input, which is read to its end first")
}

// spec says what to run.
func (f *execFlags) spec(cmd *cobra.Command, argv []string) (events.ExecSpec, error) {
	spec := events.ExecSpec{
		Argv: argv, EnvUnset: f.unset, Cwd: f.cwd, Login: f.login, Background: f.background,
		TimeoutMS: f.timeout.Milliseconds(), EnvSet: map[string]string{},
	}
	if f.target == "" {
		return spec, cli.Usagef("--target is needed")
	}
	if f.cwd != "" && !filepath.IsAbs(f.cwd) {
		return spec, cli.Usagef("--cwd %s is not absolute", f.cwd)
	}
	if f.timeout < 0 || f.grace < 0 {
		return spec, cli.Usagef("--timeout and --grace are not negative")
	}
	for _, entry := range f.set {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return spec, cli.Usagef("--env %q is not K=V", entry)
		}
		spec.EnvSet[name] = value
	}
	var err error
	if spec.Outlives, err = f.lifetime(); err != nil {
		return spec, err
	}
	if f.exact {
		spec.EnvMode = events.EnvExact
	}
	if cmd.Flags().Changed("grace") {
		ms := f.grace.Milliseconds()
		spec.GraceMS = &ms
	}
	if err := f.terminal(cmd, &spec); err != nil {
		return spec, err
	}
	return spec, f.input(cmd, &spec)
}

func (f *execFlags) lifetime() (events.Outlives, error) {
	switch o := events.Outlives(f.outlives); o {
	case "", events.OutlivesEpoch, events.OutlivesSession:
		return o, nil
	default:
		return "", cli.Usagef("--outlives is %q; it can be epoch or session", f.outlives)
	}
}

func (f *execFlags) terminal(cmd *cobra.Command, spec *events.ExecSpec) error {
	if !f.pty {
		if f.size != "" {
			return cli.Usagef("--size goes with --pty")
		}
		return nil
	}
	size := events.PTYSize{Rows: 24, Cols: 80}
	if rows, cols, ok := cli.Size(cmd.OutOrStdout()); ok {
		size = events.PTYSize{Rows: rows, Cols: cols}
	}
	if f.size != "" {
		var rest string
		n, _ := fmt.Sscanf(f.size+" ", "%dx%d%s", &size.Rows, &size.Cols, &rest)
		if n != 2 || size.Rows < 1 || size.Cols < 1 || size.Rows > events.MaxPTYSize || size.Cols > events.MaxPTYSize {
			return cli.Usagef("--size %q is not ROWSxCOLS", f.size)
		}
	}
	spec.PTY = &size
	return nil
}

func (f *execFlags) input(cmd *cobra.Command, spec *events.ExecSpec) (err error) {
	if !f.stdin {
		return nil
	}
	if spec.Stdin, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxStdin+1)); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	if len(spec.Stdin) > maxStdin {
		return cli.Usagef("standard input has more than %d bytes", maxStdin)
	}
	return nil
}

func (f *execFlags) run(ctx context.Context, cmd *cobra.Command, g *global, c *client.Conn, to string, spec events.ExecSpec) error {
	v, err := c.Show(ctx, to)
	if err != nil {
		return err
	}
	sel, err := c.SelectTarget(ctx, events.TargetName(f.target))
	if err != nil {
		return err
	}
	start := events.StartExec{Session: v.Session, Selection: sel, Spec: spec, Ask: f.ask}
	if f.background {
		a, err := c.StartExec(ctx, start)
		if err != nil {
			return err
		}
		return g.printExec(cmd, a)
	}
	tty := &keyboard{cmd: cmd, conn: c, start: start, notes: newNotes(cmd.ErrOrStderr())}
	defer tty.close()
	out := &streams{cmd: cmd, raw: f.pty || !cli.IsTerminal(cmd.OutOrStdout())}
	exited, err := c.RunExec(ctx, start, v.LastSeq, func(a events.ExecAnswer) { tellWaiting(tty.notes, a, f.target); tty.open(a) }, out.chunk)
	tty.close()
	if ctx.Err() != nil && err == nil {
		return context.Cause(ctx) // its end was awaited; ours is the signal's
	}
	if err != nil {
		return err
	}
	if out.err != nil {
		return fmt.Errorf("print output: %w", out.err)
	}
	return exitOf(exited)
}

// tellWaiting says what a command waits for that is not started at once.
func tellWaiting(n *notes, a events.ExecAnswer, target string) {
	if a.Approval != "" {
		n.say("waiting for approval %s in target %s: bus approve %s, or bus deny %s", a.Approval, target, a.Approval, a.Approval)
	}
}

func (g *global) printExec(cmd *cobra.Command, a events.ExecAnswer) error {
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), a)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), a.Exec)
	return err
}

// streams prints output.
type streams struct {
	cmd *cobra.Command
	raw bool // as it is; else without what could harm a terminal
	err error
}

func (s *streams) chunk(c client.Chunk) {
	if c.Missing > 0 {
		fmt.Fprintf(s.cmd.ErrOrStderr(), "[... %d bytes of %s were not kept ...]\n", c.Missing, c.Stream)
	}
	w := s.cmd.OutOrStdout()
	if c.Stream == "stderr" {
		w = s.cmd.ErrOrStderr()
	}
	if !s.raw && cli.IsTerminal(w) {
		filter := termtext.NewFilter(w)
		_, err := filter.Write(c.Data)
		s.note(err)
		s.note(filter.Flush())
		return
	}
	_, err := w.Write(c.Data)
	s.note(err)
}

func (s *streams) note(err error) {
	if s.err == nil {
		s.err = err
	}
}
