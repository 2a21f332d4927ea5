package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrNoGroups is wrapped by errors of [OpenGroups] where no control group can be made.
var ErrNoGroups = errors.New("no control groups")

// hierarchy is a mounted v2 control group tree.
type hierarchy struct {
	mount string // where it is mounted
	own   string // directory of this process's group
}

// findHierarchy finds the v2 tree by what is mounted, not by where it usually is.
// Controllers do not matter: killing a group needs none.
func findHierarchy() (hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return hierarchy{}, fmt.Errorf("find control groups: %w: %w", ErrNoGroups, err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return hierarchy{}, fmt.Errorf("find control groups: %w: %w", ErrNoGroups, err)
	}
	h, ok := parseHierarchy(string(mounts), string(groups))
	if !ok {
		return hierarchy{}, fmt.Errorf("no v2 tree is mounted: %w", ErrNoGroups)
	}
	return h, nil
}

// parseHierarchy reads proc(5) mountinfo and cgroup.
func parseHierarchy(mountinfo, cgroup string) (hierarchy, bool) {
	const root, point, options = 3, 4, 6
	for line := range strings.Lines(mountinfo) {
		head, tail, ok := strings.Cut(line, " - ")
		fields := strings.Fields(head)
		if !ok || !strings.HasPrefix(tail, "cgroup2 ") || len(fields) < options {
			continue
		}
		mount := unescape(fields[point])
		return hierarchy{mount: mount, own: ownGroup(mount, unescape(fields[root]), cgroup)}, true
	}
	return hierarchy{}, false
}

// ownGroup returns the directory of the v2 group that /proc/self/cgroup names, or the
// mount itself for one that lies outside of what is mounted.
func ownGroup(mount, root, cgroup string) string {
	for line := range strings.Lines(cgroup) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		rel, err := filepath.Rel(root, path)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return filepath.Join(mount, rel)
		}
	}
	return mount
}

// unescape reads the octal escapes of mountinfo.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
