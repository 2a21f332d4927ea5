package main

import (
	"github.com/spf13/cobra"

	"keryx/cmd/internal/run"
)

func newHealth(g *global) *cobra.Command {
	return run.NewHealth("  bus health\n  bus health --dir /var/lib/keryx", func() (string, error) {
		return run.FileURL(g.bus.Dir)
	}, nil)
}
