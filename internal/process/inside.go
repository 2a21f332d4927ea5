package process

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
)

// Inside reports whether a process is in a leaf that was made for a process tree, in which
// this process is not itself. Where there are no control groups it is false. The caller
// makes sure that the pid still is who it means.
func Inside(pid int) (bool, error) {
	theirs, err := leafOf("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil || theirs == "" {
		return false, err
	}
	own, err := leafOf("/proc/self/cgroup")
	return own != theirs, err
}

// leafOf returns the path of the innermost leaf that a process is in, or below.
func leafOf(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("look at control group: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return leafIn(group), nil
		}
	}
	return "", nil
}

// leafIn finds <owner>/<instance>/<leaf> in a group's path.
func leafIn(group string) string {
	const below = 2 // instance and leaf
	parts := strings.Split(group, "/")
	for i := len(parts) - 1 - below; i >= 0; i-- {
		if strings.HasPrefix(parts[i], ownerPrefix) {
			return path.Join(parts[:i+1+below]...)
		}
	}
	return ""
}
