package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/termtext"
	"keryx/schemas"
)

func newDead(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "dead", Short: "Refused input, to be looked at, corrected and sent again"}
	return cli.Group(cmd, newDeadList(g), newDeadShow(g), newDeadReplay(g), newDeadDrop(g))
}

func newDeadList(g *global) *cobra.Command {
	var principal string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List refused input with the reasons",
		Long: `List refused input with the reasons, oldest first: what broke its schema, could not be
decoded, was too large or is no command. Of each principal the last 1,000 are kept, for
7 days, 64 MiB together, and one a second after the first 20.`,
		Example: `  bus dead list
  bus dead list --principal web --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				return g.printDead(ctx, cmd.OutOrStdout(), c, events.PrincipalName(principal))
			})
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "", "only what this principal sent")
	return cmd
}

// eachLetter calls fn with every dead letter.
func eachLetter(ctx context.Context, c *client.Conn, p events.PrincipalName, fn func(events.DeadLetter) error) error {
	for q := (events.DeadList{Principal: p}); ; {
		page, err := c.DeadLetters(ctx, q)
		if err != nil {
			return err
		}
		for _, l := range page.Letters {
			q.After = l.Sequence
			if err := fn(l); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

func (g *global) printDead(ctx context.Context, w io.Writer, c *client.Conn, p events.PrincipalName) error {
	if g.json {
		return eachLetter(ctx, c, p, func(l events.DeadLetter) error { return cli.PrintJSON(w, l) })
	}
	t := cli.NewTable(w, "LETTER", "TIME", "FROM", "COMMAND", "BYTES", "CODE", "PATH", "REASON")
	err := eachLetter(ctx, c, p, func(l events.DeadLetter) error {
		t.Row(l.Sequence.String(), l.Time.Local().Format(timeLayout), string(l.Principal), l.Command.Short(),
			fmt.Sprint(l.Bytes), string(l.Code), l.Path, l.Message)
		return nil
	})
	return errors.Join(err, t.Close())
}

// letterArg reads the number of a letter.
func letterArg(arg string) (events.Sequence, error) {
	n, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || n == 0 {
		return 0, cli.Usagef("%q is no letter; 'bus dead list' numbers them", arg)
	}
	return events.Sequence(n), nil
}

func newDeadShow(g *global) *cobra.Command {
	var input bool
	cmd := &cobra.Command{
		Use:   "show LETTER",
		Short: "Show refused input and why it was refused",
		Example: `  bus dead show 12
  bus dead show 12 --input > fixed.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := letterArg(args[0])
			if err != nil {
				return err
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				l, err := c.DeadLetter(ctx, seq)
				if err != nil {
					return err
				}
				return g.printLetter(cmd.OutOrStdout(), l, input)
			})
		},
	}
	cmd.Flags().BoolVar(&input, "input", false, "print the input alone, byte for byte")
	return cmd
}

func (g *global) printLetter(w io.Writer, l events.DeadLetter, input bool) error {
	switch {
	case input:
		if _, err := w.Write(l.Input); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	case g.json:
		return cli.PrintJSON(w, l)
	}
	at := ""
	if l.Path != "" {
		at = " at " + l.Path
	}
	_, err := fmt.Fprintf(w, "letter %s of %s, %s: %s\n%s%s: %s\n%s\n", l.Sequence, l.Principal, l.Time.Local().Format(timeLayout),
		termtext.Visible(l.Command.Short()), l.Code, termtext.Visible(at), termtext.Visible(l.Message), termtext.Visible(string(l.Input)))
	return err
}

// deadReplay is how a letter is sent again.
type deadReplay struct {
	edit         string
	dryRun, keep bool
}

func newDeadReplay(g *global) *cobra.Command {
	var f deadReplay
	cmd := &cobra.Command{
		Use:   "replay LETTER",
		Short: "Send refused input again, corrected, as a command of your own",
		Long: `Send refused input again, corrected with --edit, as a command of your own: the operator
is its source, with the operator's rights, and not whoever sent it before. What only a
host or an executor may say cannot be replayed: it has to send it again itself.

The input is checked first. A letter whose command was taken is dropped, unless --keep.`,
		Example: `  bus dead replay 12 --edit fixed.json --dry-run
  bus dead show 12 --input | sed s/bdoy/body/ | bus dead replay 12 --edit -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := letterArg(args[0])
			if err != nil {
				return err
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error { return g.replayLetter(ctx, cmd, c, seq, f) })
		},
	}
	cmd.Flags().StringVar(&f.edit, "edit", "", "file with the corrected input; - for standard input")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only check it and say what would be sent")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep the letter")
	return cmd
}

func (g *global) replayLetter(ctx context.Context, cmd *cobra.Command, c *client.Conn, seq events.Sequence, f deadReplay) error {
	l, err := c.DeadLetter(ctx, seq)
	if err != nil {
		return err
	}
	data, err := f.input(cmd.InOrStdin(), l)
	if err != nil {
		return err
	}
	if err := replayable(c.Principal(), l, data); err != nil {
		return err
	}
	if f.dryRun {
		return g.printReplay(cmd.OutOrStdout(), c.Principal(), l, data)
	}
	answer, err := c.Replay(ctx, l.Command, data)
	if err != nil {
		return err
	}
	if !f.keep {
		if _, err := c.DropDead(ctx, seq); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(string(answer)))
	return err
}

func (f deadReplay) input(stdin io.Reader, l events.DeadLetter) ([]byte, error) {
	switch f.edit {
	case "":
		return l.Input, nil
	case "-":
		b, err := io.ReadAll(io.LimitReader(stdin, events.MaxData+1)) // what is more is refused as too large
		if err != nil {
			return nil, fmt.Errorf("read the corrected input: %w", err)
		}
		return b, nil
	}
	b, err := os.ReadFile(f.edit)
	if err != nil {
		return nil, fmt.Errorf("read the corrected input: %w", err)
	}
	return b, nil
}

// replayable refuses what the bus would refuse again, so that no second letter is made.
func replayable(as events.Principal, l events.DeadLetter, data []byte) error {
	entry, ok := events.Find(l.Command)
	if !ok || entry.Class != events.ClassCommand {
		return events.Errorf(events.CodeUnknownCommand, "there is no command %s, so letter %s cannot be replayed", l.Command.Short(), l.Sequence)
	}
	if !slices.Contains(entry.Roles, as.Role) {
		return events.Errorf(events.CodeForbidden, "an operator may not send %s; %s has to send it again itself", l.Command.Short(), l.Principal)
	}
	if err := schemas.Validate(string(l.Command), data); err != nil {
		refusal := &events.Error{Code: events.CodeInvalid, Message: err.Error()}
		var v *schemas.ValidationError
		if errors.As(err, &v) {
			refusal.Message, refusal.Path = v.Message, v.Path
		}
		return refusal
	}
	return nil
}

func (g *global) printReplay(w io.Writer, as events.Principal, l events.DeadLetter, data []byte) error {
	if g.json {
		return cli.PrintJSON(w, struct {
			Command events.Type     `json:"command"`
			As      string          `json:"as"`
			Data    json.RawMessage `json:"data"`
		}{l.Command, string(as.Name), data})
	}
	_, err := fmt.Fprintf(w, "would send %s as %s: %s\n", l.Command.Short(), as.Name, termtext.Visible(string(data)))
	return err
}

func newDeadDrop(g *global) *cobra.Command {
	var dryRun, all bool
	var principal string
	cmd := &cobra.Command{
		Use:   "drop LETTER...",
		Short: "Remove refused input for good",
		Example: `  bus dead drop 12 13
  bus dead drop --all --principal web --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all != (len(args) == 0) || principal != "" && !all {
				return cli.Usagef("either letters or --all are needed; --principal goes with --all")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				seqs, err := chosen(ctx, c, args, events.PrincipalName(principal))
				if err != nil {
					return err
				}
				return g.drop(ctx, cmd.OutOrStdout(), c, seqs, dryRun)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every letter, or with --principal every one of a principal")
	cmd.Flags().StringVar(&principal, "principal", "", "with --all: only what this principal sent")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say how many")
	return cmd
}

// chosen returns the letters that are meant and there.
func chosen(ctx context.Context, c *client.Conn, args []string, p events.PrincipalName) ([]events.Sequence, error) {
	var out []events.Sequence
	if len(args) == 0 {
		err := eachLetter(ctx, c, p, func(l events.DeadLetter) error {
			out = append(out, l.Sequence)
			return nil
		})
		return out, err
	}
	for _, a := range args {
		seq, err := letterArg(a)
		if err != nil {
			return nil, err
		}
		if _, err := c.DeadLetter(ctx, seq); err != nil {
			return nil, err
		}
		out = append(out, seq)
	}
	return out, nil
}

func (g *global) drop(ctx context.Context, w io.Writer, c *client.Conn, seqs []events.Sequence, dryRun bool) error {
	dropped, verb := len(seqs), "would drop"
	if !dryRun {
		verb, dropped = "dropped", 0
		for part := range slices.Chunk(seqs, 1000) {
			n, err := c.DropDead(ctx, part...)
			dropped += n
			if err != nil {
				return err
			}
		}
	}
	if g.json {
		return cli.PrintJSON(w, map[string]any{"letters": dropped, "dry_run": dryRun})
	}
	_, err := fmt.Fprintf(w, "%s %d\n", verb, dropped)
	return err
}
