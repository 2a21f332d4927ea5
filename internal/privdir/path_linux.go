package privdir

import "golang.org/x/sys/unix"

// pathOnly opens a directory to look at it and to pass through, which needs no right to
// read it.
const pathOnly = unix.O_PATH

// chown changes the owner of what was opened so.
func chown(fd, uid, gid int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) }
