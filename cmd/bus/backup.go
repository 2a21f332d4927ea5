package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"keryx/internal/backup"
	"keryx/internal/cli"
)

// onFiles refuses flags that name a bus elsewhere.
func (g *global) onFiles() error {
	if g.bus.URL != "" || g.bus.Creds != "" {
		return cli.Usagef("this works on the files of a bus directory: --url and --creds do not go with it")
	}
	return nil
}

func newBackup(g *global) *cobra.Command {
	var o backup.Options
	cmd := &cobra.Command{
		Use:   "backup TO",
		Short: "Copy the bus directory, also while its bus runs",
		Long: `Copy the bus directory, also while its bus runs, into a new directory. All that was
answered before the command began is in the copy. Every record is compared with its
checksum; a damaged store gives no backup. Snapshots and indexes, which are made again,
stay behind, and so do credentials files, which are not in the bus directory.`,
		Example: `  bus backup /backup/keryx-monday
  bus backup --no-output --dir /var/lib/keryx /backup/keryx-monday`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.onFiles(); err != nil {
				return err
			}
			o.Now = time.Now()
			progress := cli.NewProgress(cmd.ErrOrStderr())
			if cli.IsTerminal(cmd.ErrOrStderr()) {
				o.Progress = progress.Show
			}
			m, err := backup.Make(cmd.Context(), g.bus.Dir, args[0], o)
			progress.Done()
			if err != nil {
				return err
			}
			return g.printBackup(cmd.OutOrStdout(), m, "backed up into "+args[0])
		},
	}
	cmd.Flags().BoolVar(&o.NoOutput, "no-output", false, "leave the output of execs out")
	return cmd
}

func newRestore(g *global) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "restore FROM",
		Short: "Make a bus directory of a backup",
		Long: `Make a bus directory of a backup: --dir, which must be empty or missing. Every file is
compared with the backup's manifest first and the streams are counted afterwards; the
directory is there whole or not at all.

The restored store has a new generation: hosts and executors that hold something from
the time after the backup are refused and begin anew.`,
		Example: `  bus restore /backup/keryx-monday --dir /var/lib/keryx
  bus restore --check /backup/keryx-monday`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.onFiles(); err != nil {
				return err
			}
			if check {
				m, err := backup.Read(args[0])
				if err == nil {
					err = m.Check(args[0])
				}
				if err != nil {
					return err
				}
				return g.printBackup(cmd.OutOrStdout(), m, "whole")
			}
			m, err := backup.Restore(cmd.Context(), args[0], g.bus.Dir)
			if err != nil {
				return err
			}
			return g.printBackup(cmd.OutOrStdout(), m, "restored into "+g.bus.Dir)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only compare the backup with its manifest, and say what it holds")
	return cmd
}

func (g *global) printBackup(w io.Writer, m backup.Manifest, what string) error {
	if g.json {
		return cli.PrintJSON(w, m)
	}
	if _, err := fmt.Fprintf(w, "%s: of %s, log up to sequence %s, generation %d, %d files, %d KiB\n",
		what, m.Made.Local().Format(timeLayout), m.Last, m.Generation, len(m.Files), m.Bytes()>>10); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	t := cli.NewTable(w, "STREAM", "MESSAGES", "LAST")
	for _, s := range m.Streams {
		t.Row(s.Stream, fmt.Sprint(s.Messages), s.Last.String())
	}
	return t.Close()
}
