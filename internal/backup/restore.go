package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"keryx/events"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

// NotEmptyError says that a directory to restore into holds something.
type NotEmptyError struct{ Dir, Entry string }

// Error implements error.
func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("%s: a backup is restored into an empty directory, and %s holds %s", events.CodeInvalid, e.Dir, e.Entry)
}

// Restore makes a bus directory of a backup. dir must be empty or missing. It compares
// every file with the manifest before, and the streams with its counts afterwards; the
// directory is there whole or not at all.
func Restore(ctx context.Context, from, dir string) (Manifest, error) {
	m, err := Read(from)
	if err != nil {
		return m, err
	}
	if err := m.Check(from); err != nil {
		return m, err
	}
	if err := empty(dir); err != nil {
		return m, err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	temp, err := os.MkdirTemp(parent, ".keryx-restore-*") // mode 0700
	if err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	if err := m.restore(ctx, from, temp, dir); err != nil {
		return m, errors.Join(fmt.Errorf("restore %s: %w", from, err), os.RemoveAll(temp))
	}
	return m, nil
}

func (m Manifest) restore(ctx context.Context, from, temp, dir string) error {
	for _, f := range m.Files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := copyFile(filepath.Join(from, filepath.FromSlash(f.Path)), filepath.Join(temp, filepath.FromSlash(f.Path))); err != nil {
			return err
		}
	}
	if err := storefile.CheckFormat(temp); err != nil { // writes the note
		return err
	}
	messages, err := m.compare(ctx, temp)
	if err != nil {
		return err
	}
	// No fence that was given out after the backup may be good here.
	mark := sessionlog.Mark{Created: m.Created, Last: m.Last, Generation: m.Generation + 1, Messages: &messages}
	if err := sessionlog.WriteMark(temp, mark); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(temp, dir)
}

var errCount = errors.New("its files do not hold what its manifest says")

// compare counts what was restored, and returns how many messages the log has.
func (m Manifest) compare(ctx context.Context, dir string) (uint64, error) {
	var messages uint64
	for _, s := range m.Streams {
		r, err := storefile.Scan(ctx, dir, s.Stream)
		if err != nil {
			return 0, err
		}
		if len(r.Damages) > 0 {
			return 0, &storefile.DamagedError{Dir: dir, Damages: r.Damages}
		}
		if r.Messages != s.Messages || r.Last != s.Last {
			return 0, fmt.Errorf("stream %s: %w", s.Stream, errCount)
		}
		if s.Stream == events.StreamLog {
			messages = r.Messages
		}
	}
	return messages, nil
}

// empty refuses a directory that holds something.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if len(entries) > 0 {
		return &NotEmptyError{Dir: dir, Entry: entries[0].Name()}
	}
	return nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
