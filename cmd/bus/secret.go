package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/redact"
)

func newSecret(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Values that must not be stored or shown",
		Long: `Values that must not be stored or shown.

Registered secrets are in a file of the bus directory that only its owner can read, never
on the bus. 'bus up' takes them out of the output of commands before it is stored, and so
does 'executor --secrets FILE'; 'replay', 'events tail', 'session show' and 'export' take
them out of what they show. A change counts within a second, also for what runs.`,
	}
	return cli.Group(cmd, newSecretAdd(g), newSecretList(g), newSecretRemove(g))
}

func newSecretAdd(g *global) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Register a secret; its value comes by standard input or --from-file",
		Long: `Register a secret. Its value comes by standard input or from a file, never as an argument,
which every process could read. One line feed at its end does not count.`,
		Example: `  bus secret add github <token.txt
  bus secret add github --from-file token.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := secretValue(cmd, from)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(g.secretsFile()), 0o700); err != nil {
				return fmt.Errorf("make bus directory: %w", err)
			}
			if err := redact.Add(g.secretsFile(), args[0], value, time.Now()); err != nil {
				return secretRefusal(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "registered %s, %d bytes\n", args[0], len(value))
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from-file", "", "file with the value; default: standard input")
	return cmd
}

// secretValue reads a value, without the line feed that an editor or echo puts behind it.
func secretValue(cmd *cobra.Command, from string) ([]byte, error) {
	in := cmd.InOrStdin()
	if from == "" && cli.IsTerminal(in) {
		return nil, cli.Usagef("the value is not typed here, where it could be seen: give it by a pipe or --from-file")
	}
	if from != "" {
		f, err := os.Open(from)
		if err != nil {
			return nil, fmt.Errorf("read secret: %w", err)
		}
		defer func() { _ = f.Close() }() // only read
		in = f
	}
	value, err := io.ReadAll(io.LimitReader(in, redact.MaxSecret+2))
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r")), nil
}

func secretRefusal(err error) error {
	if errors.Is(err, redact.ErrSecret) || errors.Is(err, redact.ErrTaken) || errors.Is(err, redact.ErrNoEntry) || errors.Is(err, redact.ErrLoose) {
		return events.Errorf(events.CodeInvalid, "%v", err)
	}
	return err
}

func newSecretList(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the registered secrets, without their values",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := redact.Read(g.secretsFile())
			if err != nil {
				return secretRefusal(err)
			}
			t := cli.NewTable(cmd.OutOrStdout(), "NAME", "BYTES", "ADDED")
			for _, e := range entries {
				if !g.json {
					t.Row(e.Name, fmt.Sprint(len(e.Value)), e.AddedAt.Local().Format(timeLayout))
					continue
				}
				line := struct {
					Name    string    `json:"name"`
					Bytes   int       `json:"bytes"`
					AddedAt time.Time `json:"added_at"`
				}{e.Name, len(e.Value), e.AddedAt}
				if err := cli.PrintJSON(cmd.OutOrStdout(), line); err != nil {
					return err
				}
			}
			if g.json {
				return nil
			}
			return t.Close()
		},
	}
}

func newSecretRemove(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Forget a secret; what was stored meanwhile stays without it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := redact.Remove(g.secretsFile(), args[0]); err != nil {
				return secretRefusal(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", args[0])
			return err
		},
	}
}

// secretsFile is where the registered secrets are.
func (g *global) secretsFile() string {
	if g.secrets != "" {
		return g.secrets
	}
	return filepath.Join(g.bus.Dir, redact.FileName)
}

// rules are those by which views and exports hide secrets.
func (g *global) rules() (redact.Rules, error) {
	if g.secrets == "" && g.bus.URL != "" {
		return redact.Rules{}, nil // a bus elsewhere: its secrets are not here
	}
	entries, err := redact.Read(g.secretsFile())
	if err != nil {
		return redact.Rules{}, secretRefusal(err)
	}
	var values [][]byte
	for _, e := range entries {
		values = append(values, e.Value)
	}
	return redact.Rules{Secrets: redact.NewSet(values...)}, nil
}
