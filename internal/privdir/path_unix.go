//go:build unix && !linux

package privdir

import "golang.org/x/sys/unix"

// pathOnly: there is no such way to open a directory here; it has to be readable.
const pathOnly = 0

func chown(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }
