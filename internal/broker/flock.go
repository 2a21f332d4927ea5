package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const lockName = "store.lock"

// A lock outlives a killed holder for a moment: a child that the holder had just forked
// keeps a copy of the file until it executes its program, or until its own turn on a
// busy machine.
const (
	lockPatience = 3 * time.Second // for a holder that is gone
	lockRetry    = 5 * time.Millisecond
)

// HeldError says that another process serves the directory. What is not known is zero.
type HeldError struct {
	Dir   string
	PID   int
	URL   string // empty until the holder listens
	Since time.Time
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("bus directory %s is held by another process, which is just starting", e.Dir)
	}
	s := fmt.Sprintf("bus directory %s is held by process %d since %s", e.Dir, e.PID, e.Since.Format(time.RFC3339))
	if e.URL != "" {
		s += ", which serves " + e.URL
	}
	return s
}

// holderNote is what a holder writes about itself into the lock file.
type holderNote struct {
	PID   int       `json:"pid"`
	URL   string    `json:"url,omitempty"`
	Since time.Time `json:"since"`
}

// noteLimit is far more than a note has.
const noteLimit = 64 << 10

// storeLock is the right to use a directory. It ends with the process at the latest.
type storeLock struct {
	file *os.File
	note holderNote
}

// lockStore takes the lock of dir or returns [*HeldError].
func lockStore(ctx context.Context, dir string) (*storeLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store lock: %w", err)
	}
	if err := lockFile(ctx, dir, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &storeLock{file: f, note: holderNote{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)}}
	if err := l.write(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// lockFile locks f. It refuses at once while the holder lives, and waits out what is
// left of one that is gone.
func lockFile(ctx context.Context, dir string, f *os.File) error {
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for deadline := time.Now().Add(lockPatience); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		held := heldBy(dir, f)
		if !held.gone() || time.Now().After(deadline) {
			return held
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), held)
		}
	}
}

// gone reports whether the process that the note names is known to have ended. The note
// can be older than the lock, so this says nothing about who holds it.
func (e *HeldError) gone() bool {
	return e.PID > 0 && errors.Is(unix.Kill(e.PID, 0), unix.ESRCH)
}

// heldBy reads the holder's note. One that is just being written reads as unknown.
func heldBy(dir string, f *os.File) *HeldError {
	var note holderNote
	if err := json.NewDecoder(io.NewSectionReader(f, 0, noteLimit)).Decode(&note); err != nil {
		return &HeldError{Dir: dir}
	}
	return &HeldError{Dir: dir, PID: note.PID, URL: note.URL, Since: note.Since}
}

// announce adds the URL to the note.
func (l *storeLock) announce(url string) error {
	l.note.URL = url
	return l.write()
}

// write replaces the note. The file itself must stay, since the lock is on it.
func (l *storeLock) write() error {
	b, err := json.Marshal(l.note)
	if err != nil {
		return fmt.Errorf("encode holder of %s: %w", l.file.Name(), err)
	}
	b = append(b, '\n')
	if _, err := l.file.WriteAt(b, 0); err != nil {
		return fmt.Errorf("write holder of %s: %w", l.file.Name(), err)
	}
	if err := l.file.Truncate(int64(len(b))); err != nil {
		return fmt.Errorf("write holder of %s: %w", l.file.Name(), err)
	}
	return nil
}

// release gives the directory free. It unlocks before it closes: a child of this process
// that is between fork and exec has a copy of the file, which would hold the lock on.
func (l *storeLock) release() error {
	if err := errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close()); err != nil {
		return fmt.Errorf("release store lock: %w", err)
	}
	return nil
}
