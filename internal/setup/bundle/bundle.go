// Package bundle reads package directories and makes private copies of them.
//
// A directory is walked by descriptors, without following a symlink anywhere below it:
// what is hashed is what was opened, and what is copied is hashed while it is copied. So a
// copy whose digests are those of a plan has exactly the bytes that were reviewed, whoever
// changes the directory meanwhile.
//
// Only regular files and directories make a package; anything else is refused. Bounds are
// [MaxFiles], [MaxBytes] and [MaxDepth].
package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"keryx/events"
	"keryx/internal/setup"
)

const (
	// MaxFiles keeps the record of a package below the size of an event.
	MaxFiles = 4096
	// MaxBytes bounds all files together, 1 GiB: they are copied for each run.
	MaxBytes = 1 << 30
	// MaxDepth bounds how deep directories are nested.
	MaxDepth = 32
	// maxManifest bounds the manifest, which is read whole.
	maxManifest = 1 << 20
)

// ErrPackage is wrapped by errors about what is in a directory, as opposed to errors of
// reading it.
var ErrPackage = errors.New("not a package")

// ChangedError says that a directory is not what it was when it was reviewed.
type ChangedError struct {
	Path string // of the first file that differs
	Why  string
}

// Error implements error.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s %s since it was reviewed", e.Path, e.Why)
}

// Read reads a package directory: its manifest, its files and their digests. It changes
// and runs nothing.
func Read(dir string) (events.Package, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return events.Package{}, fmt.Errorf("read package: %w", err)
	}
	files, manifest, err := walk(abs, nil)
	if err != nil {
		return events.Package{}, fmt.Errorf("read package %s: %w", abs, err)
	}
	if manifest == nil {
		return events.Package{}, fmt.Errorf("read package %s: there is no %s: %w", abs, setup.ManifestName, ErrPackage)
	}
	m, err := setup.ParseManifest(manifest)
	if err != nil {
		return events.Package{}, fmt.Errorf("read %s: %w", filepath.Join(abs, setup.ManifestName), err)
	}
	if err := checkEntry(m, files); err != nil {
		return events.Package{}, fmt.Errorf("read package %s: %w", abs, err)
	}
	return m.Package(abs, files), nil
}

// checkEntry refuses a setup whose program is not an executable file of the package.
func checkEntry(m setup.Manifest, files []events.PackageFile) error {
	if m.Setup == nil || !strings.Contains(m.Setup.Command[0], "/") || path.IsAbs(m.Setup.Command[0]) {
		return nil
	}
	entry := path.Clean(m.Setup.Command[0])
	i := slices.IndexFunc(files, func(f events.PackageFile) bool { return f.Path == entry })
	if i < 0 {
		return fmt.Errorf("setup.command: the package has no file %s: %w", entry, ErrPackage)
	}
	if !files[i].Executable {
		return fmt.Errorf("setup.command: %s is not executable: %w", entry, ErrPackage)
	}
	return nil
}

// Copy makes a private copy of a package directory in into, which must not exist, and
// returns nil only if the copy is exactly these files. Else the copy is taken away and the
// error is a [*ChangedError], or one of the system. Nobody else can write the copy; with
// readable everybody who reaches the directory can read it.
func Copy(dir, into string, want []events.PackageFile, readable bool) (err error) {
	c := &copier{into: into, readable: readable}
	if err := c.dir(""); err != nil {
		return fmt.Errorf("copy package: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(into))
		}
	}()
	got, _, err := walk(dir, c)
	if errors.Is(err, ErrPackage) {
		return &ChangedError{Path: dir, Why: "has " + err.Error()}
	}
	if err != nil {
		return fmt.Errorf("copy package %s: %w", dir, err)
	}
	return compare(got, want)
}

func compare(got, want []events.PackageFile) error {
	for i := range max(len(got), len(want)) {
		switch {
		case i == len(got), i < len(want) && got[i].Path > want[i].Path:
			return &ChangedError{want[i].Path, "is gone"}
		case i == len(want), got[i].Path < want[i].Path:
			return &ChangedError{got[i].Path, "was added"}
		case got[i] != want[i]:
			return &ChangedError{got[i].Path, "changed"}
		}
	}
	return nil
}

// copier writes what is walked.
type copier struct {
	into     string
	readable bool
}

// mode takes from others what they may not have.
func (c *copier) mode(m fs.FileMode) fs.FileMode {
	if !c.readable {
		m &= 0o700
	}
	return m
}

func (c *copier) dir(rel string) error { return os.Mkdir(filepath.Join(c.into, rel), c.mode(0o755)) }

func (c *copier) create(rel string, executable bool) (*os.File, error) {
	mode := fs.FileMode(0o444)
	if executable {
		mode = 0o555
	}
	return os.OpenFile(filepath.Join(c.into, rel), os.O_WRONLY|os.O_CREATE|os.O_EXCL, c.mode(mode))
}

// walker visits a directory in order of paths.
type walker struct {
	copy     *copier // nil: nothing is copied
	files    []events.PackageFile
	manifest []byte
	bytes    int64
}

func walk(dir string, c *copier) ([]events.PackageFile, []byte, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	root := os.NewFile(uintptr(fd), dir)
	defer func() { _ = root.Close() }() // only read from
	w := &walker{copy: c}
	if err := w.directory(root, "", 0); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(w.files, func(a, b events.PackageFile) int { return strings.Compare(a.Path, b.Path) })
	return w.files, w.manifest, nil
}

func (w *walker) directory(d *os.File, rel string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%s is nested deeper than %d directories: %w", rel, MaxDepth, ErrPackage)
	}
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.entry(d, name, path.Join(rel, name), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(d *os.File, name, rel string, depth int) error {
	// NONBLOCK: a pipe in the directory must not hold up the reader.
	fd, err := unix.Openat(int(d.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%s is a symlink: %w", rel, ErrPackage)
	}
	if errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("%s is neither a file nor a directory: %w", rel, ErrPackage)
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: rel, Err: err}
	}
	f := os.NewFile(uintptr(fd), rel)
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		if w.copy != nil {
			if err := w.copy.dir(rel); err != nil {
				return err
			}
		}
		return w.directory(f, rel, depth+1)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory: %w", rel, ErrPackage)
	}
	return w.file(f, rel, info.Mode()&0o111 != 0)
}

func (w *walker) file(f *os.File, rel string, executable bool) error {
	if len(w.files) == MaxFiles {
		return fmt.Errorf("there are more than %d files: %w", MaxFiles, ErrPackage)
	}
	sum := sha256.New()
	into := io.Writer(sum)
	var out *os.File
	if w.copy != nil {
		var err error
		if out, err = w.copy.create(rel, executable); err != nil {
			return err
		}
		into = io.MultiWriter(sum, out)
	}
	n, err := w.read(f, rel, into)
	if out != nil {
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		return err
	}
	w.files = append(w.files, events.PackageFile{
		Path: rel, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: n, Executable: executable,
	})
	return nil
}

// read reads a file to its end, within the bounds.
func (w *walker) read(f *os.File, rel string, into io.Writer) (int64, error) {
	var keep strings.Builder
	if rel == setup.ManifestName {
		into = io.MultiWriter(into, &keep)
	}
	n, err := io.Copy(into, io.LimitReader(f, MaxBytes-w.bytes+1))
	if w.bytes += n; w.bytes > MaxBytes {
		return n, fmt.Errorf("the files have more than %d bytes: %w", int64(MaxBytes), ErrPackage)
	}
	if keep.Len() > maxManifest {
		return n, fmt.Errorf("%s has more than %d bytes: %w", rel, maxManifest, ErrPackage)
	}
	if rel == setup.ManifestName {
		w.manifest = []byte(keep.String())
	}
	return n, err
}
