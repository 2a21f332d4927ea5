package privdir

import (
	"runtime"

	"keryx/events"
)

// Unsupported is how a directory is refused where the platform has no POSIX users.
func Unsupported(path string) error {
	return events.Errorf(events.CodeRuntimeDirUnsupported,
		"%s cannot be made sure to be private: %s has no POSIX users; declare the target without a runtime directory", path, runtime.GOOS)
}
