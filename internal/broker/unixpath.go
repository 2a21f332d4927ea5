package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path that fits a socket address, less its final zero.
const maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1

// withSocketPath calls f with a path to the socket that fits a socket address. A path
// that is too long is reached through an open descriptor of its directory, so the
// socket is where it belongs however deep that is.
func withSocketPath(path string, f func(short string) error) error {
	if len(path) <= maxSocketPath {
		return f(path)
	}
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open directory of socket: %w", err)
	}
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(short)); err != nil {
		return errors.Join(fmt.Errorf("socket path %s is longer than %d bytes and /proc is not there to shorten it: "+
			"use a shorter directory: %w", path, maxSocketPath, err), dir.Close())
	}
	return errors.Join(f(short), dir.Close())
}

// listenUnix makes the socket at path, mode 0600, in place of one that a killed process
// left. The caller removes the file.
func listenUnix(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove stale operator socket: %w", err)
	}
	var l *net.UnixListener
	err := withSocketPath(path, func(short string) error {
		var err error
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on operator socket: %w", err)
	}
	// The short path means nothing once its directory is closed.
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close operator socket to others: %w", err), l.Close())
	}
	return l, nil
}

// dialUnix connects to the socket at path.
func dialUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	var c *net.UnixConn
	err := withSocketPath(path, func(short string) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", short)
		if err != nil {
			return err
		}
		c = conn.(*net.UnixConn)
		return nil
	})
	return c, err
}
