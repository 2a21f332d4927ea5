package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"keryx/internal/cli"
	"keryx/internal/doctor"
	"keryx/internal/termtext"
)

// Exit codes of 'bus doctor', beside those of every command.
const (
	exitWarning = 3
	exitFault   = 4
)

func newDoctor(g *global) *cobra.Command {
	var repair, dryRun, all bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with a bus directory, and what to do",
		Long: `Say what is wrong with a bus directory, and what to do: who has it, its format, its
space and modes, what a killed bus left, every record's checksum, what the log once held,
indexes, events that cannot be decoded, names of sessions without a record. While a bus
runs its store is not read.

--repair has indexes and snapshots made again and removes what a killed bus left; it
never touches a fact. With --dry-run it only says so.

The exit code is 0 if nothing is wrong, 3 after a warning, 4 if a bus would not start or
facts are lost.`,
		Example: `  bus doctor --dir /var/lib/keryx
  bus doctor --repair --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := g.onFiles(); err != nil {
				return err
			}
			if dryRun && !repair {
				return cli.Usagef("--dry-run goes with --repair")
			}
			r, release, err := doctor.Examine(cmd.Context(), g.bus.Dir)
			if err != nil {
				return err
			}
			err = g.printReport(cmd.OutOrStdout(), r, all)
			if err == nil && repair {
				err = g.repair(cmd.OutOrStdout(), r, dryRun)
			}
			if err := errors.Join(err, release()); err != nil {
				return err
			}
			return severityExit(r.Worst())
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "make projections again and remove what was left; no fact is touched")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "with --repair: only say what would be done")
	cmd.Flags().BoolVarP(&all, "verbose", "v", false, "also say what is as it has to be")
	return cmd
}

func severityExit(s doctor.Severity) error {
	switch s {
	case doctor.Warning:
		return &cli.ExitError{Code: exitWarning}
	case doctor.Fault:
		return &cli.ExitError{Code: exitFault}
	}
	return nil
}

func (g *global) printReport(w io.Writer, r doctor.Report, all bool) error {
	if g.json {
		return cli.PrintJSON(w, r)
	}
	fine := 0
	for _, f := range r.Findings {
		if f.Severity == doctor.Fine && !all {
			fine++
			continue
		}
		text := fmt.Sprintf("%-8s %s: %s", f.Severity, f.Check, termtext.Visible(f.What))
		if f.Do != "" {
			text += "\n         -> " + termtext.Visible(f.Do)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s; %d checks found nothing\n", r.Dir, r.Worst(), fine)
	return err
}

func (g *global) repair(w io.Writer, r doctor.Report, dryRun bool) error {
	done, err := r.Repair(dryRun)
	for _, d := range done {
		if g.json {
			err = errors.Join(err, cli.PrintJSON(w, d))
			continue
		}
		verb := "repaired"
		if dryRun {
			verb = "would"
		}
		_, werr := fmt.Fprintf(w, "%s: %s\n", verb, termtext.Visible(d.What))
		err = errors.Join(err, werr)
	}
	return err
}
