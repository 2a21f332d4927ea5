package execution

import (
	"fmt"
	"os"
)

// ring is a file that holds the last size bytes of an endless sequence. Positions are
// those in the sequence. The file has no name: it vanishes with the process.
type ring struct {
	dir  string
	size int64
	file *os.File // made at the first write
}

// writeAt writes b, at most size bytes, at a position of the sequence.
func (r *ring) writeAt(b []byte, pos int64) error {
	if err := r.open(); err != nil {
		return err
	}
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
