package process_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperVar makes the test binary run one of the helpers instead of tests, for what only
// a process of its own can show.
const helperVar = "KERYX_TEST_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVar); name != "" {
		if err := helpers[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
