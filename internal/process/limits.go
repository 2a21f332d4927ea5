package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits bound a process tree by the controllers of its control group. 0: no limit.
type Limits struct {
	// CPUMilli is the time of processors in thousandths of one; at least 10, if any.
	CPUMilli int64
	// MemoryBytes is memory; the tree gets no swap beside it where the kernel accounts
	// for swap.
	MemoryBytes int64
	PIDs        int64 // processes and threads
}

// ErrNoLimits is wrapped by errors of [Start] where a limit cannot be enforced.
var ErrNoLimits = errors.New("limits cannot be enforced")

// cpuPeriod is that of the kernel's default, in microseconds (cgroup v2, cpu.max).
const cpuPeriod = 100_000

// setting is a file of a control group and what is written to it.
type setting struct {
	controller, file, value string
	optional                bool // there is nothing to bound where the file is missing
}

func (l Limits) settings() (out []setting) {
	if l.CPUMilli > 0 {
		out = append(out, setting{"cpu", "cpu.max", fmt.Sprintf("%d %d", l.CPUMilli*cpuPeriod/1000, cpuPeriod), false})
	}
	if l.MemoryBytes > 0 {
		out = append(out,
			setting{"memory", "memory.max", strconv.FormatInt(l.MemoryBytes, 10), false},
			setting{"memory", "memory.swap.max", "0", true})
	}
	if l.PIDs > 0 {
		out = append(out, setting{"pids", "pids.max", strconv.FormatInt(l.PIDs, 10), false})
	}
	return out
}

// Controllers returns the names of the controllers that the limits need, sorted.
func (l Limits) Controllers() (out []string) {
	for _, s := range l.settings() {
		out = append(out, s.controller)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Enforces reports whether a controller acts on the groups made here. Nil: none does.
func (g *Groups) Enforces(controller string) bool {
	return g != nil && slices.Contains(words(g.dir, "cgroup.subtree_control"), controller)
}

// delegate makes the controllers that there are act on the groups to be made. What cannot
// be had shows in [Groups.Enforces].
func (g *Groups) delegate(own string) {
	for _, dir := range []string{own, filepath.Dir(g.dir), g.dir} {
		for _, c := range []string{"cpu", "memory", "pids"} {
			if !slices.Contains(words(dir, "cgroup.controllers"), c) {
				continue
			}
			err := handDown(dir, c)
			if errors.Is(err, unix.EBUSY) && dir == own && g.stepAside(own) {
				_ = handDown(dir, c)
			}
		}
	}
}

// handDown makes a controller act on the groups below a group.
func handDown(dir, controller string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
}

// stepAside moves this process out of its group into one below it, if it is alone there: a
// group with processes cannot hand its controllers down.
func (g *Groups) stepAside(own string) bool {
	self := strconv.Itoa(os.Getpid())
	if !slices.Equal(words(own, "cgroup.procs"), []string{self}) {
		return false
	}
	aside := filepath.Join(own, g.owner+".self")
	if err := os.Mkdir(aside, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return false
	}
	return os.WriteFile(filepath.Join(aside, "cgroup.procs"), []byte(self), 0) == nil
}

// words are those of a group's file; none if it cannot be read.
func words(dir, file string) []string {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// limit writes limits to a group before anything runs in it.
func limit(dir string, l Limits) error {
	for _, s := range l.settings() {
		file := filepath.Join(dir, s.file)
		if s.optional {
			if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
				continue
			}
		}
		// Not made where it is missing: then there is no such controller.
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(s.value)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("limit %s: %w: %w", s.controller, ErrNoLimits, reason(err))
		}
	}
	return nil
}
