package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"keryx/events"
	"keryx/internal/storefile"
)

// manifestFile is written last: without it a directory is no backup.
const manifestFile = "backup.json"

// Manifest says what a backup holds.
type Manifest struct {
	// Format is that of the bus directory.
	Format int       `json:"format"`
	Made   time.Time `json:"made"`
	// Running reports whether a bus served the directory meanwhile.
	Running bool `json:"running"`
	// Last is the log's last sequence in the backup.
	Last       events.Sequence    `json:"last_sequence"`
	Created    time.Time          `json:"stream_created"`
	Generation uint64             `json:"generation"`
	Streams    []storefile.Copied `json:"streams"`
	Files      []File             `json:"files"`
	// Sum is the SHA-256 of the manifest without it.
	Sum string `json:"sum"`
}

// File is a file of a backup.
type File struct {
	Path   string `json:"path"` // relative, with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Bytes returns the size of all files.
func (m Manifest) Bytes() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

// BadError says that a directory is no backup, or not what was written as one.
type BadError struct {
	Dir  string
	File string // relative; empty for the whole
	Err  error
}

// Error implements error.
func (e *BadError) Error() string {
	at := e.Dir
	if e.File != "" {
		at = filepath.Join(e.Dir, filepath.FromSlash(e.File))
	}
	return fmt.Sprintf("%s: backup %s: %v", events.CodeStoreDamaged, at, e.Err)
}

// Unwrap returns what is wrong.
func (e *BadError) Unwrap() error { return e.Err }

var (
	errNotWhole = errors.New("it has no " + manifestFile + ": it was never finished, or is no backup")
	errSum      = errors.New("it does not match its checksum")
	errSize     = errors.New("it has another length than the manifest says")
	errExtra    = errors.New("the manifest does not name it")
)

// Read returns the manifest of a backup, or [*BadError]; a newer format is
// [*storefile.FormatError].
func Read(dir string) (Manifest, error) {
	var m Manifest
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, &BadError{Dir: dir, Err: errNotWhole}
	}
	if err != nil {
		return m, fmt.Errorf("read backup: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, &BadError{Dir: dir, File: manifestFile, Err: err}
	}
	sum, err := m.sum()
	if err != nil {
		return m, err
	}
	if sum != m.Sum {
		return m, &BadError{Dir: dir, File: manifestFile, Err: errSum}
	}
	if m.Format > storefile.Format {
		return m, &storefile.FormatError{Dir: dir, Found: m.Format}
	}
	return m, nil
}

func (m Manifest) sum() (string, error) {
	m.Sum = ""
	b, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

func (m Manifest) write(dir string) error {
	var err error
	if m.Sum, err = m.sum(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return storefile.Write(filepath.Join(dir, manifestFile), append(b, '\n'))
}

// list notes every file below a directory.
func (m *Manifest) list(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f := File{Path: filepath.ToSlash(rel)}
		if f.Bytes, f.SHA256, err = hashFile(path); err != nil {
			return err
		}
		m.Files = append(m.Files, f)
		return nil
	})
}

// Check compares every file of a backup with its manifest.
func (m Manifest) Check(dir string) error {
	named := map[string]bool{manifestFile: true}
	for _, f := range m.Files {
		named[f.Path] = true
		size, sum, err := hashFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
		switch {
		case err != nil:
			return &BadError{Dir: dir, File: f.Path, Err: err}
		case size != f.Bytes:
			return &BadError{Dir: dir, File: f.Path, Err: errSize}
		case sum != f.SHA256:
			return &BadError{Dir: dir, File: f.Path, Err: errSum}
		}
	}
	var now Manifest
	if err := now.list(dir); err != nil {
		return fmt.Errorf("list backup: %w", err)
	}
	for _, f := range now.Files {
		if !named[f.Path] {
			return &BadError{Dir: dir, File: f.Path, Err: errExtra}
		}
	}
	return nil
}

func hashFile(path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	n, err := io.Copy(h, f)
	return n, hex.EncodeToString(h.Sum(nil)), err
}
