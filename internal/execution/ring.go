package execution

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ring is a file that holds the last size bytes of an endless sequence. Positions are
// those in the sequence. The file has no name: it vanishes with the process.
type ring struct {
	dir  string
	size int64
	file *os.File // made at the first write
	// free says how much room the filesystem of dir has; one that does not say is trusted.
	free    func(dir string) (int64, error)
	granted int64 // how far the file may grow without asking for room again
}

const (
	// ringStep is how much a ring grows between two looks at the filesystem, and ringLeave
	// what it leaves free there: output is not worth a full disk.
	ringStep  = 4 << 20
	ringLeave = 64 << 20
)

// writeAt writes b, at most size bytes, at a position of the sequence.
func (r *ring) writeAt(b []byte, pos int64) error {
	if err := r.open(); err != nil {
		return err
	}
	r.grow(pos + int64(len(b)))
	at := pos % r.size
	first := min(int64(len(b)), r.size-at)
	if _, err := r.file.WriteAt(b[:first], at); err != nil {
		return fmt.Errorf("write spool: %w", err)
	}
	if _, err := r.file.WriteAt(b[first:], 0); err != nil {
		return fmt.Errorf("write spool: %w", err)
	}
	return nil
}

// grow lets the ring grow to an end of the sequence, or gives it the size that it has by now
// for good: before it has gone round, positions mean the same in a smaller one.
func (r *ring) grow(end int64) {
	for end > r.granted && r.granted < r.size {
		free, err := r.free(r.dir)
		if err == nil && free < ringLeave+ringStep && r.granted >= minSpool {
			r.size = r.granted
			return
		}
		step := int64(ringStep)
		if r.granted == 0 {
			step = minSpool
		}
		r.granted = min(r.size, r.granted+step)
	}
}

// freeOf returns how many bytes of the filesystem of a directory its user may fill.
func freeOf(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("ask the filesystem of %s: %w", dir, err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil //nolint:gosec // no filesystem has 2^63 bytes
}

// readAt fills b from a position of the sequence that the ring still holds.
func (r *ring) readAt(b []byte, pos int64) error {
	if err := r.open(); err != nil {
		return err
	}
	at := pos % r.size
	first := min(int64(len(b)), r.size-at)
	if _, err := r.file.ReadAt(b[:first], at); err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	if _, err := r.file.ReadAt(b[first:], 0); err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	return nil
}

func (r *ring) open() error {
	if r.file != nil {
		return nil
	}
	f, err := os.CreateTemp(r.dir, "keryx-spool-*") // mode 0600
	if err != nil {
		return fmt.Errorf("make spool: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return fmt.Errorf("make spool: %w", err)
	}
	r.file = f
	return nil
}

func (r *ring) close() {
	if r.file != nil {
		_ = r.file.Close() // nothing in it is wanted any more
		r.file = nil
	}
}
