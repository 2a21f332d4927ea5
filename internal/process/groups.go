package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Groups makes control groups: one leaf a process tree, under a directory of the
// owner's instance. It is safe for concurrent use. Close it.
type Groups struct {
	mount string
	owner string // name of the owner's directory
	dir   string // of this instance
	lock  *os.File
}

const (
	ownerPrefix = "keryx-"
	// emptyLimit is how long killed processes of a former instance get to be gone.
	emptyLimit = 5 * time.Second
	// lockTries bounds the wait for a lock that a child holds between fork and exec.
	lockTries = 5
	lockPause = 20 * time.Millisecond
)

// OpenGroups makes the directory of an instance. Owner and instance are what names
// files; another instance of the same owner finds it by the owner ([Groups.EmptyFormer]).
// The directory is locked for as long as this process lives, so that nobody takes a
// living instance for a dead one.
//
// Errors wrap [ErrNoGroups]: there is no v2 tree, or it may not be written.
func OpenGroups(owner, instance string) (*Groups, error) {
	for _, name := range []string{owner, instance} {
		if name == "" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") {
			return nil, invalid("%q is no name of a control group", name)
		}
	}
	h, err := findHierarchy()
	if err != nil {
		return nil, err
	}
	g := &Groups{mount: h.mount, owner: ownerPrefix + owner}
	g.dir = filepath.Join(h.own, g.owner, instance)
	if err := g.make(); err != nil {
		return nil, fmt.Errorf("make control group %s: %w: %w", g.dir, ErrNoGroups, err)
	}
	g.delegate(h.own)
	return g, nil
}

func (g *Groups) make() error {
	parent := filepath.Dir(g.dir)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	lock, err := lockDir(g.dir)
	if err == nil {
		g.lock = lock
		_, err = os.Stat(filepath.Join(g.dir, "cgroup.kill")) // kernels before 5.14
	}
	if err != nil {
		_ = g.Close()
	}
	return err
}

// lockDir locks a directory; [unix.EWOULDBLOCK] says that another has it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	var locked error
	err = conn.Control(func(fd uintptr) { locked = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	if err = errors.Join(err, locked); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// leaf makes a leaf for one process tree.
func (g *Groups) leaf(name string, l *Limits) (*leaf, error) {
	if name == "" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") {
		return nil, invalid("%q is no name of a control group", name)
	}
	made, err := newLeaf(filepath.Join(g.dir, name))
	if err != nil || l == nil {
		return made, err
	}
	if err := limit(made.dir, *l); err != nil {
		made.closeFD()
		return nil, errors.Join(err, made.remove())
	}
	return made, nil
}

// Close gives the directory up. What still runs in a leaf keeps its leaf.
func (g *Groups) Close() error {
	// A busy directory holds what was left on purpose.
	removed := removeDir(g.dir)
	_ = unix.Rmdir(filepath.Dir(g.dir)) // another instance may have it
	if g.lock == nil {
		return removed
	}
	return errors.Join(removed, g.lock.Close())
}

func removeDir(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return fmt.Errorf("remove control group %s: %w", dir, err)
}

// EmptyFormer kills all that runs in leaves of dead instances of this owner, wherever in
// the tree they were made, waits until they are empty, removes them, and returns the
// leaves' names. A name is returned also when its leaf could not be emptied; the error
// says so.
func (g *Groups) EmptyFormer() (leaves []string, err error) {
	for _, dir := range g.instances() {
		names, failed := emptyInstance(dir)
		leaves, err = append(leaves, names...), errors.Join(err, failed)
	}
	return leaves, err
}

// instances returns the directories of the owner's other instances.
func (g *Groups) instances() (dirs []string) {
	// What cannot be read is not ours.
	_ = filepath.WalkDir(g.mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if d.Name() != g.owner {
			return nil
		}
		for _, name := range children(path) {
			if dir := filepath.Join(path, name); dir != g.dir {
				dirs = append(dirs, dir)
			}
		}
		return fs.SkipDir
	})
	return dirs
}

// children returns the groups below a group.
func children(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // gone
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// emptyInstance empties what a dead instance left; a living one is left alone.
func emptyInstance(dir string) ([]string, error) {
	lock, err := lockPatiently(dir)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at control group %s: %w", dir, err)
	}
	defer lock.Close()
	names := children(dir)
	if err := emptyGroup(dir, emptyLimit); err != nil {
		return names, err
	}
	if err := removeTree(dir); err != nil {
		return names, fmt.Errorf("remove control group: %w", err)
	}
	_ = unix.Rmdir(filepath.Dir(dir)) // others may be in it
	return names, nil
}

// lockPatiently tries for a moment: a child that the dead one was just starting holds
// the lock until it executes.
func lockPatiently(dir string) (*os.File, error) {
	for try := 1; ; try++ {
		f, err := lockDir(dir)
		if try == lockTries || !errors.Is(err, unix.EWOULDBLOCK) {
			return f, err
		}
		<-time.After(lockPause)
	}
}

// removeTree removes an empty group and the groups below it.
func removeTree(dir string) error {
	for _, name := range children(dir) {
		if err := removeTree(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
