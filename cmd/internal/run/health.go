package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"keryx/events"
	"keryx/internal/cli"
)

// Bounds of the question for health.
const (
	healthTime = 5 * time.Second
	healthMost = 4 << 10
)

// NewHealth returns the command 'health', which asks a long-running command of this program
// on this machine whether it can do its work. url finds out where that answers: its own
// flags are added by flags, which may be nil.
func NewHealth(example string, url func() (string, error), flags func(*cobra.Command)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask whether the one that runs here can do its work",
		Long: `Ask whether the one that runs here can do its work: it prints ok, or fails with the
reason. For the health checks of containers and of service managers.`,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := url()
			if err != nil {
				return err
			}
			if err := askHealth(cmd.Context(), at); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return err
		},
	}
	if flags != nil {
		flags(cmd)
	}
	return cmd
}

// HealthOf returns the command 'health' of a program that answers on its --http.
func HealthOf(program string) *cobra.Command {
	var addr string
	return NewHealth("  "+program+" health --http 127.0.0.1:9090", func() (string, error) {
		if addr == "" {
			return "", cli.Usagef("--http is needed: that of the %s that runs", program)
		}
		return "http://" + addr, nil
	}, func(cmd *cobra.Command) {
		cmd.Flags().StringVar(&addr, "http", "", "loopback host:port at which it answers, as its own --http says (required)")
	})
}

// FileURL returns the URL that a bus has left in its directory.
func FileURL(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "run", "http"))
	if errors.Is(err, os.ErrNotExist) {
		return "", events.Errorf(events.CodeUnavailable, "no bus with --http runs on %s", dir)
	}
	if err != nil {
		return "", fmt.Errorf("find the bus: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func askHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return events.Errorf(events.CodeUnavailable, "it does not answer: %v", err)
	}
	defer func() { _ = resp.Body.Close() }() // read as far as it is needed
	body, err := io.ReadAll(io.LimitReader(resp.Body, healthMost))
	if err != nil {
		return events.Errorf(events.CodeUnavailable, "it does not answer in full: %v", err)
	}
	if resp.StatusCode != http.StatusOK {
		return events.Errorf(events.CodeUnavailable, "%s", strings.TrimSpace(string(body)))
	}
	return nil
}
