package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/archive"
	"keryx/internal/cli"
	"keryx/internal/exchange"
	"keryx/internal/redact"
)

type exportFlags struct {
	to       string
	noOutput bool
	redact   string
}

func newExport(g *global) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export ID|KEY -o FILE",
		Short: "Write a session's record and output into a file",
		Long: `Write a session's record, with the kept output of its commands, into a file that
'bus import' brings into another bus, profile or directory. The file is JSON lines, one
event or piece of output each, chained by hashes: what is changed in it is found out.

Registered secrets ('bus secret') and values whose name says that they are secret are
taken out, unless --redact says otherwise. --redact strict keeps only what is known to
be harmless: ids, counts, times and words of closed sets; no text, no output.

The content hash that is printed names the record. Pass it on apart from the file, for
'bus import --content', when the way that the file takes is not trusted.`,
		Example: `  bus export cli:local -o local.jsonl
  bus export cli:local -o - --no-output | gzip > local.jsonl.gz`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.to == "" {
				return cli.Usagef("-o is needed: the file to write, or - for standard output")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				return g.export(ctx, cmd, c, args[0], f)
			})
		},
	}
	cmd.Flags().StringVarP(&f.to, "output", "o", "", "file to write; - for standard output (required)")
	cmd.Flags().StringVar(&f.redact, "redact", string(events.RedactRules), "what to take out: rules (secrets), strict (all but ids, counts and times) or none")
	complete(cmd, "redact", cobra.FixedCompletions(cli.Words([]events.Redaction{events.RedactRules, events.RedactStrict, events.RedactNone}), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&f.noOutput, "no-output", false, "leave the output of commands out")
	return cmd
}

func (g *global) export(ctx context.Context, cmd *cobra.Command, c *client.Conn, to string, f exportFlags) error {
	scope, err := sessionScope(ctx, c, to)
	if err != nil {
		return err
	}
	filter, err := g.filter(f.redact)
	if err != nil {
		return err
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	job := exchange.Job{
		Profile: c.Principal().Profile, Scope: scope, Output: !f.noOutput, Software: "bus " + cli.Version(), Now: time.Now(), Filter: filter,
	}
	if cli.IsTerminal(cmd.ErrOrStderr()) {
		job.Progress = func(done int) { progress.Show(fmt.Sprintf("%d read", done)) }
	}
	h, err := f.write(cmd.OutOrStdout(), func(w io.Writer) (archive.Header, error) { return exchange.Export(ctx, c, job, w) })
	progress.Done()
	if err != nil {
		return err
	}
	report := cmd.OutOrStdout()
	if f.to == "-" {
		report = cmd.ErrOrStderr()
	}
	if g.json {
		return cli.PrintJSON(report, h)
	}
	_, err = fmt.Fprintf(report, "exported session %s: %d events up to ordinal %s, %d pieces of output, redaction %s\ncontent %s\n",
		h.Session, h.Events, h.Last.Ordinal, h.Chunks, h.Redaction, h.Content)
	return err
}

// filter returns what takes out what is not to leave the bus.
func (g *global) filter(mode string) (exchange.Filter, error) {
	m, err := cli.OneOf("redact", mode, events.RedactRules, events.RedactStrict, events.RedactNone)
	if err != nil {
		return nil, err
	}
	rules, err := g.rules()
	switch {
	case m == events.RedactNone:
		return exchange.Whole{}, nil
	case err != nil:
		return nil, err
	case m == events.RedactStrict:
		return &exchange.Redacted{Document: redact.Strict{}, Secrets: rules.Secrets}, nil
	}
	return &exchange.Redacted{Document: rules, Secrets: rules.Secrets}, nil
}

// write makes the file whole or not at all, readable by its owner alone.
func (f exportFlags) write(stdout io.Writer, export func(io.Writer) (archive.Header, error)) (archive.Header, error) {
	if f.to == "-" {
		return export(stdout)
	}
	file, err := os.CreateTemp(filepath.Dir(f.to), ".keryx-export-*") // mode 0600
	if err != nil {
		return archive.Header{}, fmt.Errorf("write export: %w", err)
	}
	h, err := export(file)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), f.to)
	}
	if err != nil {
		return h, errors.Join(err, os.Remove(file.Name()))
	}
	return h, nil
}
