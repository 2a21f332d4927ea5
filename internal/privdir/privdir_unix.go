//go:build unix

package privdir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"keryx/events"
)

// Owner is who a directory is private to.
type Owner struct{ UID, GID uint32 }

// Self is the user of this process.
func Self() Owner { return Owner{UID: uint32(unix.Geteuid()), GID: uint32(unix.Getegid())} }

// dir is an open directory on a path.
type dir struct {
	fd   int
	path string
	stat unix.Stat_t
}

func (d *dir) close() { _ = unix.Close(d.fd) } // only looked at

const openFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Check returns nil if path is a private directory of its owner.
func Check(path string, owner Owner) error {
	d, err := walk(path, owner)
	if err != nil {
		return err
	}
	defer d.close()
	return d.private(owner)
}

// Below returns the directory called name in root, made if it is not there, and private to
// owner. Root itself need not be private, but nobody else may be able to change it. Name
// is one element of a path.
func Below(root, name string, owner Owner) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", events.Errorf(events.CodeInvalid, "%q is no name of a directory", name)
	}
	d, err := walk(root, owner)
	if err != nil {
		return "", err
	}
	defer d.close()
	if err := d.safe(owner, nil); err != nil {
		return "", err
	}
	path := filepath.Join(root, name)
	if err := unix.Mkdirat(d.fd, name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", events.Errorf(events.CodeRuntimeDirMissing, "make directory %s: %v", path, err)
	}
	sub, err := d.open(name)
	if err != nil {
		return "", err
	}
	defer sub.close()
	if err := sub.give(owner); err != nil {
		return "", events.Errorf(events.CodeRuntimeDirForeign, "give %s to user %d: %v", path, owner.UID, err)
	}
	return path, sub.private(owner)
}

// walk opens a path from the root on and makes sure of all that leads to its end.
func walk(path string, owner Owner) (*dir, error) {
	if !filepath.IsAbs(path) {
		return nil, events.Errorf(events.CodeInvalid, "directory %q is not absolute", path)
	}
	at, err := openRoot()
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.Trim(filepath.Clean(path), "/"), "/") {
		if name == "" {
			break // the root itself
		}
		next, err := at.open(name)
		if err == nil {
			if err = at.safe(owner, next); err != nil {
				next.close()
			}
		}
		at.close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func openRoot() (*dir, error) {
	fd, err := unix.Open("/", openFlags, 0)
	if err != nil {
		return nil, events.Errorf(events.CodeRuntimeDirMissing, "open /: %v", err)
	}
	return opened(fd, "/")
}

func opened(fd int, path string) (*dir, error) {
	d := &dir{fd: fd, path: path}
	if err := unix.Fstat(fd, &d.stat); err != nil {
		d.close()
		return nil, events.Errorf(events.CodeRuntimeDirMissing, "look at %s: %v", path, err)
	}
	return d, nil
}

// open opens what is called name in d.
func (d *dir) open(name string) (*dir, error) {
	path := filepath.Join(d.path, name)
	fd, err := openAt(d.fd, name)
	if err == nil {
		return opened(fd, path)
	}
	var st unix.Stat_t
	if unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil, events.Errorf(events.CodeRuntimeDirSymlink, "%s is a symbolic link; name what it leads to", path)
	}
	return nil, events.Errorf(events.CodeRuntimeDirMissing, "%s: %v", path, err)
}

// openAt tries without the right to read, too: that of passing through is enough above.
func openAt(fd int, name string) (int, error) {
	for {
		got, err := unix.Openat(fd, name, openFlags|pathOnly, 0)
		if !errors.Is(err, unix.EINTR) {
			return got, err
		}
	}
}

// safe returns what would let others replace next, which is in d; nil is whatever will be
// made there.
func (d *dir) safe(owner Owner, next *dir) error {
	if d.stat.Uid != 0 && d.stat.Uid != owner.UID {
		return events.Errorf(events.CodeRuntimeDirExposed, "%s belongs to user %d, who could replace what is in it", d.path, d.stat.Uid)
	}
	if d.stat.Mode&0o022 == 0 {
		return nil
	}
	// Sticky: what is in it is safe from all but its owner.
	if d.stat.Mode&unix.S_ISVTX != 0 && (next == nil || next.stat.Uid == 0 || next.stat.Uid == owner.UID) {
		return nil
	}
	if next != nil && d.stat.Mode&unix.S_ISVTX != 0 {
		return events.Errorf(events.CodeRuntimeDirForeign, "%s belongs to user %d, not to user %d", next.path, next.stat.Uid, owner.UID)
	}
	return events.Errorf(events.CodeRuntimeDirExposed, "%s has mode %04o: others could replace what is in it", d.path, perm(d.stat))
}

// private returns what keeps d from being private to owner.
func (d *dir) private(owner Owner) error {
	if d.stat.Uid != owner.UID {
		return events.Errorf(events.CodeRuntimeDirForeign, "%s belongs to user %d, not to user %d", d.path, d.stat.Uid, owner.UID)
	}
	if mode := perm(d.stat); mode != 0o700 {
		return events.Errorf(events.CodeRuntimeDirExposed, "%s has mode %04o, not 0700", d.path, mode)
	}
	return nil
}

func perm(st unix.Stat_t) uint32 { return uint32(st.Mode) & 0o7777 }

// give gives what this process has made to its owner. Whoever finds it made and not yet
// given does so, too: two may make it at once, and one may be killed in between.
func (d *dir) give(owner Owner) error {
	if self := Self(); d.stat.Uid != self.UID || self.UID == owner.UID {
		return nil
	}
	if err := chown(d.fd, int(owner.UID), int(owner.GID)); err != nil {
		return err
	}
	return unix.Fstat(d.fd, &d.stat)
}
