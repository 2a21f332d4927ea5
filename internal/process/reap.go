package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// leaders are the children that this package started and will reap itself. It is global
// because the children of a process are: whoever reaps must know all of them.
var leaders = registry{pids: make(map[int]bool)}

// registry is a set of pids. Forking holds fork, so that whoever looks at the children
// sees each either registered or not at all, and so that one child is tagged at a time.
type registry struct {
	fork sync.Mutex
	pids map[int]bool
}

func (r *registry) remove(pid int) {
	r.fork.Lock()
	defer r.fork.Unlock()
	delete(r.pids, pid)
}

const (
	// reapTick bounds how long an orphan whose signal was missed waits.
	reapTick = time.Second
	// reapPause gathers the signals of many ends.
	reapPause = 10 * time.Millisecond
)

// Reap makes this process inherit the orphans of its descendants, and reaps those that
// end, until ctx ends. Several may run at once.
//
// It takes no exit status from anybody: what this package started, and what is in the
// session of this process, as every child of os/exec is unless it asked for a session of
// its own, is left to whoever started it.
func Reap(ctx context.Context) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of orphans: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	tick := time.NewTicker(reapTick)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			pause.Reset(reapPause)
		case <-tick.C:
			leaders.reapOrphans()
		case <-pause.C:
			leaders.reapOrphans()
		}
	}
}

// reapOrphans reaps ended children that nobody here started.
func (r *registry) reapOrphans() {
	own, err := unix.Getsid(0)
	if err != nil {
		return
	}
	r.fork.Lock()
	defer r.fork.Unlock()
	for _, pid := range ownChildren() {
		s, err := readStatus(pid)
		if err != nil || r.pids[pid] || !s.dead || s.session == own {
			continue
		}
		// ECHILD: another reaper was first.
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

// ownChildren lists the children of all threads of this process.
func ownChildren() (pids []int) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		return childrenByParent() // kernels without CONFIG_PROC_CHILDREN
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended, and its children are another's
		}
		for field := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func childrenByParent() (pids []int) {
	all, _, err := processes()
	if err != nil {
		return nil
	}
	for _, s := range all {
		if s.parent == os.Getpid() {
			pids = append(pids, s.pid)
		}
	}
	return pids
}
