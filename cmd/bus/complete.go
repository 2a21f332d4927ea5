package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
)

const (
	// completeWithin bounds how long a shell waits for completions.
	completeWithin = 2 * time.Second
	completions    = 100
)

// sessionArg completes one session: its keys, and its id.
func (g *global) sessionArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return g.sessionFlag(cmd, args, prefix)
}

// sessionFlag completes the value of a flag that names a session. A bus that cannot be
// reached completes nothing.
func (g *global) sessionFlag(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeWithin)
	defer cancel()
	var found []string
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	err := g.bus.With(ctx, quiet, func(c *client.Conn) error {
		for s, err := range c.Sessions(ctx, events.SessionList{}) {
			if err != nil {
				return err
			}
			for _, name := range append(s.Keys, string(s.Session)) {
				if strings.HasPrefix(name, prefix) {
					found = append(found, name+"\t"+string(s.Status))
				}
			}
			if len(found) >= completions {
				break
			}
		}
		return nil
	})
	if err != nil && len(found) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// typeFlag completes globs on types.
func typeFlag(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	seen := make(map[string]bool)
	add := func(s string) {
		if strings.HasPrefix(s, prefix) && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for _, e := range events.Catalogue() {
		if e.Class != events.ClassEvent {
			continue
		}
		noun, _, _ := strings.Cut(e.Type.Short(), ".")
		add(noun + ".*")
		add(e.Type.Short())
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a fault of this program
	}
}
