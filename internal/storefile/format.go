package storefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"keryx/events"
)

// Format is the version of the form in which this bus keeps its directory. It rises when
// an older bus could not read the directory any more; there is nothing to upgrade yet.
const Format = 1

const formatFile = "format.json"

type formatNote struct {
	Format int `json:"format"`
}

// FormatError says that a directory was written by a newer bus, or does not say by which.
type FormatError struct {
	Dir   string
	Found int   // 0 if it cannot be read
	Err   error // why it cannot be read
}

// Error implements error; it says what can be done.
func (e *FormatError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s cannot be read: %v. Restore it from a backup, or write {\"format\":%d} if this bus wrote the directory last",
			events.CodeStoreDamaged, filepath.Join(e.Dir, formatFile), e.Err, Format)
	}
	return fmt.Sprintf("%s: the directory %s has format %d and this bus knows formats up to %d: use the newer bus that wrote it, or restore an older backup elsewhere",
		events.CodeStoreNewer, e.Dir, e.Found, Format)
}

// Unwrap returns why the note cannot be read; nil for a newer format.
func (e *FormatError) Unwrap() error { return e.Err }

// CheckFormat refuses a directory of another format with [*FormatError]. A directory
// without a note, which is new or of a bus before there were notes, gets one.
func CheckFormat(dir string) error {
	path := filepath.Join(dir, formatFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writeFormat(path)
	}
	if err != nil {
		return fmt.Errorf("read format: %w", err)
	}
	var note formatNote
	if err := json.Unmarshal(b, &note); err != nil {
		return &FormatError{Dir: dir, Err: err}
	}
	switch {
	case note.Format < 1:
		return &FormatError{Dir: dir, Err: errNoFormat}
	case note.Format > Format:
		return &FormatError{Dir: dir, Found: note.Format}
	}
	return nil
}

var errNoFormat = errors.New("it names no format")

func writeFormat(path string) error {
	b, err := json.Marshal(formatNote{Format})
	if err != nil {
		return fmt.Errorf("encode format: %w", err)
	}
	if err := writeSynced(path+".tmp", append(b, '\n')); err != nil {
		return fmt.Errorf("write format: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("write format: %w", err)
	}
	return nil
}
