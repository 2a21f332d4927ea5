package execution

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Reexec replaces this process by itself, with the same arguments, unless its environment
// holds nothing but the short list that commands may see and the names in keep. A child
// can read its parent's environment, as it was at the start, from /proc: what is not
// there cannot be read. It returns nil when there is nothing to do.
//
// Call it first thing, before anything was started. The process id stays.
func Reexec(keep ...string) error {
	own := os.Environ()
	clean := slices.DeleteFunc(slices.Clone(own), func(entry string) bool {
		name, _, ok := strings.Cut(entry, "=")
		return !ok || !inherits(name) && !slices.Contains(keep, name)
	})
	if len(clean) == len(own) {
		return nil
	}
	if err := syscall.Exec("/proc/self/exe", os.Args, clean); err != nil {
		return fmt.Errorf("start anew with a clean environment: %w", err)
	}
	return nil
}
