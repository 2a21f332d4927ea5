package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/archive"
	"keryx/internal/cli"
	"keryx/internal/exchange"
)

func newImport(g *global) *cobra.Command {
	var content archive.Hash
	var list bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Bring an exported record into this bus, to be read",
		Long: `Bring the record of a session that 'bus export' wrote into this bus. It is there once
all of it has come, and is read-only: 'session show', 'session diff', 'why', 'replay',
'events tail' and 'output' take its id, or import- and its id if a session of that id
lives here. A file that was damaged, cut short or edited is refused with the line.

Importing the same record again changes nothing; another one of the same session is
refused.`,
		Example: `  bus import local.jsonl
  bus import local.jsonl --content 3f2a...
  bus import --list
  bus replay import-01M8QTRSQ9PTFF81598C010KJM`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list != (len(args) == 0) {
				return cli.Usagef("either a FILE or --list is needed")
			}
			return g.connected(cmd, func(ctx context.Context, c *client.Conn) error {
				if list {
					return g.printImports(ctx, cmd.OutOrStdout(), c)
				}
				return g.importFile(ctx, cmd, c, args[0], content)
			})
		},
	}
	cmd.Flags().TextVar(&content, "content", archive.Hash{}, "take the file only if its content has this hash")
	cmd.Flags().BoolVar(&list, "list", false, "list what was imported")
	return cmd
}

func (g *global) importFile(ctx context.Context, cmd *cobra.Command, c *client.Conn, path string, want archive.Hash) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	// What is wrong with the file is said before any of it is sent.
	h, err := exchange.Check(file)
	var line *archive.LineError
	switch {
	case errors.As(err, &line):
		return events.Errorf(events.CodeInvalid, "import %s: %v", path, line)
	case err != nil:
		return err
	case want != archive.Hash{} && want != h.Content:
		return events.Errorf(events.CodeInvalid, "import %s: its content is %s, not %s", path, h.Content, want)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	fact, err := c.Import(ctx, h.Session, h.Content.String(), file, g.importing(cmd, file))
	if err != nil {
		return err
	}
	if g.json {
		return cli.PrintJSON(cmd.OutOrStdout(), fact)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "imported session %s of profile %s: %d events up to ordinal %s, %d pieces of output; to read it: bus replay %s\n",
		fact.Session, fact.FromProfile, fact.Events, fact.LastOrdinal, fact.Chunks, events.ImportScope(fact.Session))
	return err
}

// importing shows how far an import has come, on a terminal.
func (g *global) importing(cmd *cobra.Command, file *os.File) func(int64) {
	info, err := file.Stat()
	if err != nil || !cli.IsTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	return func(taken int64) {
		if taken >= info.Size() {
			progress.Done()
			return
		}
		progress.Show(fmt.Sprintf("%d of %d MiB", taken>>20, info.Size()>>20))
	}
}

func (g *global) printImports(ctx context.Context, w io.Writer, c *client.Conn) error {
	t := cli.NewTable(w, "SCOPE", "PROFILE", "EVENTS", "LAST", "OUTPUT", "EXPORTED", "REDACTION", "CONTENT")
	for f, err := range c.Imports(ctx) {
		switch {
		case err != nil:
			return err
		case g.json:
			if err := cli.PrintJSON(w, f); err != nil {
				return err
			}
		default:
			t.Row(string(events.ImportScope(f.Session)), string(f.FromProfile), fmt.Sprint(f.Events), "#"+f.LastOrdinal.String(),
				fmt.Sprint(f.Chunks), f.ExportedAt.Local().Format(timeLayout), string(f.Redaction), f.Content[:12])
		}
	}
	if g.json {
		return nil
	}
	return t.Close()
}
