package authority_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the main function of the authority processes that a test starts.
func TestMain(m *testing.M) {
	if url := os.Getenv(authorityEnv); url != "" {
		if err := serveAuthority(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
