package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxSecrets is how many secrets a file holds at most.
const MaxSecrets = 1000

// FileName is the name of the file in the directory of a bus.
const FileName = "secrets.json"

// Entry is a registered secret.
type Entry struct {
	Name    string    `json:"name"`
	Value   []byte    `json:"value"`
	AddedAt time.Time `json:"added_at"`
}

// Errors about the file.
var (
	ErrLoose   = errors.New("others can read the file of secrets; chmod 600 it")
	ErrTaken   = errors.New("a secret of this name is registered")
	ErrNoEntry = errors.New("no secret of this name is registered")
)

type stored struct {
	Secrets []Entry `json:"secrets"`
}

// Read returns the entries of a file, by name. A file that is not there has none.
func Read(path string) ([]Entry, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read secrets of %s: %w", path, ErrLoose)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		// The decoder's words could repeat a part of the file.
		return nil, fmt.Errorf("read secrets of %s: %w", path, errors.New("it is not as 'bus secret' writes it"))
	}
	return s.Secrets, nil
}

// Add registers a secret.
func Add(path, name string, value []byte, now time.Time) error {
	if err := CheckSecret(value); err != nil {
		return err
	}
	entries, err := Read(path)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == name }):
		return fmt.Errorf("%q: %w", name, ErrTaken)
	case len(entries) >= MaxSecrets:
		return fmt.Errorf("there are %d secrets: %w", len(entries), ErrSecret)
	}
	return write(path, append(entries, Entry{Name: name, Value: value, AddedAt: now.UTC().Truncate(time.Second)}))
}

// Remove forgets a secret.
func Remove(path, name string) error {
	entries, err := Read(path)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Name == name })
	if len(rest) == len(entries) {
		return fmt.Errorf("%q: %w", name, ErrNoEntry)
	}
	return write(path, rest)
}

// write replaces the file.
func write(path string, entries []Entry) (err error) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	b, err := json.MarshalIndent(stored{entries}, "", "  ")
	if err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+FileName+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write secrets: %w", err), os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// reloadAfter is how old what is known of the file may be.
const reloadAfter = time.Second

// File is a file of secrets in use: it is read again when it has changed. It is safe for
// concurrent use; nil has no secrets.
type File struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	set    *Set
	looked time.Time
	stamp  time.Time
	size   int64
}

// Open reads a file of secrets; one that is not there yet is empty.
func Open(path string, log *slog.Logger) (*File, error) {
	f := &File{path: path, log: log}
	return f, f.load()
}

// load needs mu held, or f to be new.
func (f *File) load() error {
	f.looked = time.Now()
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.set, f.stamp, f.size = nil, time.Time{}, 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at secrets: %w", err)
	}
	if f.set != nil && info.ModTime().Equal(f.stamp) && info.Size() == f.size {
		return nil
	}
	entries, err := Read(f.path)
	if err != nil {
		return err
	}
	var values [][]byte
	for _, e := range entries {
		values = append(values, e.Value)
	}
	f.set, f.stamp, f.size = NewSet(values...), info.ModTime(), info.Size()
	return nil
}

// Current returns the secrets that are registered now, or were a second ago. While the
// file cannot be read, those known last count on.
func (f *File) Current() *Set {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) >= reloadAfter {
		if err := f.load(); err != nil {
			f.log.Error("the secrets known last count on", "error", err)
		}
	}
	return f.set
}
