package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

var (
	modes    = []events.Mode{events.ModeEnqueue, events.ModeMerge, events.ModeSteer, events.ModeInterrupt, events.ModeReject}
	kinds    = []events.ItemKind{events.ItemUser, events.ItemSystem, events.ItemJobExit, events.ItemSetupReceipt, events.ItemPeer}
	bindings = []events.Binding{events.BindSource, events.BindSurface, events.BindEpoch}
	onResets = []events.OnReset{events.OnResetCarry, events.OnResetDrop}
)

// submitFlags are the flags of a message.
type submitFlags struct {
	mode, kind, onReset, key, at string
	allow, bind                  []string
	ttl, in                      time.Duration
	follow                       bool
	wait                         string
}

func newSubmit(g *global) *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit ID|KEY [TEXT|-]",
		Short: "Put a message into a session, busy or not, and follow what becomes of it",
		Long: `Put a message into a session, busy or not, and follow what becomes of it.

TEXT is one argument; with - or without it the message is read from standard input.
The receipt is printed. With --wait the command ends when the message has reached that
state, shows on standard error where it stands, and fails if it will not get there; Ctrl-C
ends the waiting, not the message. Waiting needs a running bus. Without one a message is
queued on disk, for the hosts of the next.
With --wait settled the reply is printed and the exit code is 1 unless the turn completed.

While a turn runs, --mode says what to do: enqueue waits in order, merge joins messages
sent shortly after each other into one turn, steer goes into the running turn, interrupt
aborts it and is next, reject fails as busy. A host that cannot do a mode takes the first
of --allow that it can, on record; without one the message is refused as unsupported.`,
		Example: `  bus submit cli:local 'run the tests'
  bus submit cli:local 'left, not right' --mode steer --allow enqueue --wait settled
  git diff | bus submit cli:local - --ttl 10m
  bus submit cli:local 'good morning' --at 08:00`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.submit(args, time.Now())
			if err != nil {
				return err
			}
			wait, err := waitFlag(f.wait)
			if err != nil {
				return err
			}
			if s.Body.Text, err = message(cmd.InOrStdin(), args); err != nil {
				return err
			}
			return g.submitting(cmd, wait, func(ctx context.Context, c *client.Conn) error {
				r, err := c.Submit(ctx, s)
				if err != nil {
					return err
				}
				return g.followReceipt(ctx, cmd, c, r, wait)
			})
		},
	}
	f.flags(cmd)
	return cmd
}

// submitting is connected, or needs a running bus if the message is to be waited for.
func (g *global) submitting(cmd *cobra.Command, wait events.ItemState, f func(context.Context, *client.Conn) error) error {
	if wait == "" {
		return g.connected(cmd, f)
	}
	return g.running(cmd, "nobody would take the message; start one with 'bus up' or 'bus serve', or queue it without --wait", f)
}

func (f *submitFlags) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.mode, "mode", "", "what to do while a turn runs: "+strings.Join(cli.Words(modes), ", ")+" (default enqueue)")
	fl.StringSliceVar(&f.allow, "allow", nil, "modes to take instead, in this order, if the host cannot do it")
	fl.StringVar(&f.kind, "kind", "", "who speaks: "+strings.Join(cli.Words(kinds), ", ")+" (default user)")
	fl.StringVar(&f.key, "idempotency-key", "", "with the same key again within 24 h the first receipt is given")
	fl.DurationVar(&f.ttl, "ttl", 0, "give up unless it was taken within so long")
	fl.StringVar(&f.at, "at", "", "deliver at this time, never earlier: RFC 3339, '2026-12-01 18:00' or 18:00")
	fl.DurationVar(&f.in, "in", 0, "deliver after so long")
	fl.StringSliceVar(&f.bind, "bind", nil, "drop it when this changes: "+strings.Join(cli.Words(bindings), ", "))
	fl.StringVar(&f.onReset, "on-reset", "", "what a reset does with it: carry or drop (default carry for kind user)")
	fl.BoolVar(&f.follow, "follow", false, "let a name of an ended epoch mean the session as it is now")
	fl.StringVar(&f.wait, "wait", "", "wait until it is "+strings.Join(cli.Words(waitStates), ", "))
	for name, words := range map[string][]string{
		"mode": cli.Words(modes), "allow": cli.Words(modes), "kind": cli.Words(kinds), "bind": cli.Words(bindings),
		"on-reset": cli.Words(onResets), "wait": cli.Words(waitStates),
	} {
		complete(cmd, name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// submit checks the flags and makes the command of them, without its text.
func (f *submitFlags) submit(args []string, now time.Time) (s events.Submit, err error) {
	s = events.Submit{To: args[0], IdempotencyKey: f.key, Follow: f.follow, TTLMS: f.ttl.Milliseconds(), InMS: f.in.Milliseconds()}
	switch {
	case f.ttl < 0 || f.ttl > 0 && s.TTLMS == 0:
		return s, cli.Usagef("--ttl %s: at least 1ms", f.ttl)
	case f.in < 0:
		return s, cli.Usagef("--in %s: not in the past", f.in)
	case f.in > 0 && f.at != "":
		return s, cli.Usagef("--in and --at exclude each other")
	}
	if f.at != "" {
		if s.At, err = cli.ParseTime(f.at, now); err != nil {
			return s, err
		}
	}
	if s.Mode, err = cli.OneOf("mode", f.mode, modes...); err != nil {
		return s, err
	}
	if s.Kind, err = cli.OneOf("kind", f.kind, kinds...); err != nil {
		return s, err
	}
	if s.OnReset, err = cli.OneOf("on-reset", f.onReset, onResets...); err != nil {
		return s, err
	}
	if s.Allow, err = each("allow", f.allow, modes); err != nil {
		return s, err
	}
	s.Bind, err = each("bind", f.bind, bindings)
	return s, err
}

func each[T ~string](flag string, values []string, set []T) (out []T, err error) {
	for _, v := range values {
		t, err := cli.OneOf(flag, v, set...)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// message is the second argument or, if it is - or missing, standard input.
func message(stdin io.Reader, args []string) (string, error) {
	if len(args) > 1 && args[1] != "-" {
		return args[1], nil
	}
	if len(args) == 1 && cli.IsTerminal(stdin) {
		return "", cli.Usagef("no message: give it as an argument, or - to type it")
	}
	b, err := io.ReadAll(io.LimitReader(stdin, events.MaxBody+1))
	if err != nil {
		return "", fmt.Errorf("read the message: %w", err)
	}
	if len(b) > events.MaxBody {
		return "", events.Errorf(events.CodeTooLarge, "a message has at most %d bytes", events.MaxBody)
	}
	return string(b), nil
}
