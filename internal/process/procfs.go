package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// status is what /proc tells of a process.
type status struct {
	pid, parent, group, session int
	// start is the time since boot, in clock ticks: with the pid it names a process.
	start uint64
	dead  bool // a zombie, or on its way out
}

// identity names a process over the reuse of its pid.
type identity struct {
	pid   int
	start uint64
}

func (s status) identity() identity { return identity{s.pid, s.start} }

// readStatus reads /proc/<pid>/stat.
func readStatus(pid int) (status, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return status{}, err
	}
	return parseStatus(pid, string(b))
}

// parseStatus reads the fields after the command's name, which may hold spaces and
// brackets itself (proc(5)).
func parseStatus(pid int, line string) (status, error) {
	const state, parent, group, session, start = 0, 1, 2, 3, 19
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) <= start {
		return status{}, fmt.Errorf("read status of process %d: %d fields", pid, len(fields))
	}
	s := status{pid: pid, dead: strings.Contains("ZXx", fields[state])}
	for i, to := range map[int]*int{parent: &s.parent, group: &s.group, session: &s.session} {
		v, err := strconv.Atoi(fields[i])
		if err != nil {
			return status{}, fmt.Errorf("read status of process %d: %w", pid, err)
		}
		*to = v
	}
	v, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return status{}, fmt.Errorf("read status of process %d: %w", pid, err)
	}
	s.start = v
	return s, nil
}

// processes returns the status of every process there is. gone is how many of those
// listed ended before they could be read.
func processes() (all []status, gone int, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, 0, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, 0, fmt.Errorf("list processes: %w", err)
	}
	all = make([]status, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		s, err := readStatus(pid)
		if err != nil {
			gone++
			continue
		}
		all = append(all, s)
	}
	return all, gone, nil
}

// carries reports whether a process has an entry in its environment. Of one that may
// not be read it is false.
func carries(pid int, entry string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(b, []byte{0}) {
		if string(v) == entry {
			return true
		}
	}
	return false
}
