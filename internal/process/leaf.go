package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
)

// leaf is the control group of one process tree. Nothing that a process does takes it
// out of its group, short of the right to write another one.
type leaf struct {
	dir string
	fd  int // for cloning into it
}

func newLeaf(dir string) (*leaf, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make control group: %w", err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Rmdir(dir)
		return nil, fmt.Errorf("open control group %s: %w", dir, err)
	}
	return &leaf{dir: dir, fd: fd}, nil
}

// closeFD ends the use of the leaf for cloning.
func (l *leaf) closeFD() {
	_ = unix.Close(l.fd)
	l.fd = -1
}

// members returns the living processes in the leaf and below. The leaf is empty only
// when the kernel says so: then there are none, whatever the lists say.
func (l *leaf) members() ([]status, error) {
	busy, err := populated(l.dir)
	if err != nil || !busy {
		return nil, err
	}
	pids, err := pidsIn(l.dir)
	if err != nil {
		return nil, err
	}
	var out []status
	for _, pid := range pids {
		if s, err := readStatus(pid); err == nil && !s.dead {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		// Populated by what came or went meanwhile: not empty yet.
		return nil, errBusy
	}
	return out, nil
}

var errBusy = errors.New("control group is busy")

// signal sends sig to every process in the leaf. KILL is one act of the kernel that no
// fork escapes.
func (l *leaf) signal(sig unix.Signal) error {
	if sig == unix.SIGKILL {
		return killGroup(l.dir)
	}
	told := map[identity]bool{}
	for range 2 { // again, for what was forked meanwhile
		members, err := l.members()
		if err != nil && !errors.Is(err, errBusy) {
			return err
		}
		for _, m := range members {
			if id := m.identity(); !told[id] {
				told[id] = true
				if err := signalOne(id, sig); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// certain: that a group is empty is the kernel's word.
func (l *leaf) certain(int) bool { return true }

// empty says what it proves that members found none.
func (l *leaf) empty() events.Cleanup { return events.CleanupProved }

// await waits until the leaf may have changed, or for so long: KILL wakes it at once,
// the time is for what TERM ends.
func (l *leaf) await(d time.Duration) { _ = awaitChange(l.dir, d) }

// remove removes the leaf if nothing runs in it.
func (l *leaf) remove() error { return removeTree(l.dir) }

func killGroup(dir string) error {
	err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kill control group: %w", err)
	}
	return nil
}

// populated reports whether any process lives in a group or below it. One that is gone
// is empty.
func populated(dir string) (bool, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("look at control group: %w", err)
	}
	return !bytes.Contains(b, []byte("populated 0")), nil
}

// awaitChange waits for a change of what a group says of itself, or for so long. What
// changed before the wait is not missed: the file is read first.
func awaitChange(dir string, d time.Duration) error {
	f, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return err
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || bytes.Contains(b, []byte("populated 0")) {
		return err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) {
		// EINTR and the end of the time are the same to the caller, who looks again.
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, int(d.Milliseconds())) //nolint:gosec // a descriptor is small
	})
}

// emptyGroup kills what is in a group and waits until it is empty.
func emptyGroup(dir string, limit time.Duration) error {
	until := time.Now().Add(limit)
	for {
		if err := killGroup(dir); err != nil {
			return err
		}
		busy, err := populated(dir)
		switch {
		case err != nil:
			return err
		case !busy:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("control group %s is not empty %v after it was killed", dir, limit)
		}
		if err := awaitChange(dir, time.Second); err != nil {
			return err
		}
	}
}

// pidsIn lists the processes of a group and of those below it.
func pidsIn(dir string) (pids []int, err error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return nil, fmt.Errorf("list control group: %w", err)
	}
	for field := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(field)
		if err == nil && pid > 1 { // 0: of another pid namespace
			pids = append(pids, pid)
		}
	}
	for _, name := range children(dir) {
		below, err := pidsIn(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		pids = append(pids, below...)
	}
	return pids, nil
}
