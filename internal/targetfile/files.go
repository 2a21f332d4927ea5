package targetfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"keryx/events"
	"keryx/internal/targets"
)

// Files are the target files of a directory, with their last good versions. The zero
// value of each other field is valid; it is not safe for concurrent use.
type Files struct {
	Dir string

	good map[string]events.TargetSpec // by path
}

// Match reports whether a file name is that of a target file.
func Match(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".")
}

// Load reads the directory and returns what is declared by now, in the order of names,
// and an [*Error] for each file whose present version is not in force. A directory that
// is not there declares nothing; when it cannot be read the error says so, and the
// declarations are those of before.
func (f *Files) Load() ([]targets.Declaration, []error) {
	paths, err := targetFiles(f.Dir)
	if err != nil {
		return f.declarations(nil), []error{&Error{Path: f.Dir, Message: reason(err)}}
	}
	next := newLoad(f.good)
	for _, p := range paths {
		next.read(p)
	}
	next.settle()
	f.good = next.good
	return f.declarations(next.broken), next.errors(paths)
}

// targetFiles returns the paths of a directory's target files, sorted.
func targetFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if Match(e.Name()) && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}

func (f *Files) declarations(broken map[string]error) []targets.Declaration {
	var out []targets.Declaration
	for path, spec := range f.good {
		d := targets.Declaration{Spec: spec}
		if err := broken[path]; err != nil {
			d.Broken = events.Errorf(events.CodeInvalid, "%v", err)
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b targets.Declaration) int {
		return strings.Compare(string(a.Spec.Name), string(b.Spec.Name))
	})
	return out
}

// load is one reading of a directory.
type load struct {
	before map[string]events.TargetSpec
	now    map[string]events.TargetSpec // as the files are
	good   map[string]events.TargetSpec // as is in force
	broken map[string]error
	owners map[events.TargetName]string // who has a name
}

func newLoad(before map[string]events.TargetSpec) *load {
	return &load{
		before: before, now: map[string]events.TargetSpec{}, good: map[string]events.TargetSpec{},
		broken: map[string]error{}, owners: map[events.TargetName]string{},
	}
}

func (l *load) read(path string) {
	spec, err := Read(path)
	if err != nil {
		l.broken[path] = err
		return
	}
	l.now[path] = spec
}

// settle gives names out: first to the files that had them, then in the order of paths.
// Who gets none keeps what it had.
func (l *load) settle() {
	for path, old := range l.before {
		spec, read := l.now[path]
		switch {
		case read && spec.Name == old.Name:
			l.take(path, spec)
		case l.broken[path] != nil:
			l.take(path, old)
		}
	}
	for _, path := range sorted(l.now) {
		spec := l.now[path]
		if l.owners[spec.Name] == path {
			continue
		}
		if other, taken := l.owners[spec.Name]; taken {
			l.broken[path] = &Error{Path: path, Message: fmt.Sprintf("target %q is declared by %s already", spec.Name, other)}
			l.keep(path)
			continue
		}
		l.take(path, spec)
	}
}

func (l *load) take(path string, spec events.TargetSpec) {
	l.good[path], l.owners[spec.Name] = spec, path
}

// keep keeps the last good version if its name is still free.
func (l *load) keep(path string) {
	if old, ok := l.before[path]; ok && l.owners[old.Name] == "" {
		l.take(path, old)
	}
}

// errors returns what is wrong, in the order of paths.
func (l *load) errors(paths []string) (out []error) {
	for _, p := range paths {
		if err := l.broken[p]; err != nil {
			out = append(out, err)
		}
	}
	return out
}

func sorted[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
