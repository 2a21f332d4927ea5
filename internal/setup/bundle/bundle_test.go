package bundle_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"keryx/events"
	"keryx/internal/setup"
	"keryx/internal/setup/bundle"
)

const manifest = `name: Hello World
version: 1.0.0
source: example.org/hello
setup:
  command: [bin/setup, --quiet]
  timeout: 30s
  needs: [tar]
`

// pack writes a package directory.
func pack(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func hello(t *testing.T) string {
	t.Helper()
	return pack(t, map[string]string{
		setup.ManifestName: manifest, "bin/setup": "#!/bin/sh\ntrue\n", "data/a": "a", "data/b/c": "c",
	})
}

func TestReadSaysWhatIsInADirectory(t *testing.T) {
	t.Parallel()
	dir := hello(t)
	p, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if p.Key != setup.KeyOf("Hello World", "example.org/hello") || p.Dir != dir || p.Revision != setup.ContentRevision(p.Files) {
		t.Errorf("package is %+v", p)
	}
	if d := cmp.Diff(&events.PackageSetup{Command: []string{"bin/setup", "--quiet"}, TimeoutMS: 30_000, Needs: []string{"tar"}}, p.Setup); d != "" {
		t.Errorf("setup (-want +got):\n%s", d)
	}
	var paths []string
	for _, f := range p.Files {
		paths = append(paths, f.Path)
	}
	if d := cmp.Diff([]string{"bin/setup", "data/a", "data/b/c", setup.ManifestName}, paths); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func TestReadRefusesWhatIsNoPackage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		with func(t *testing.T, dir string)
		want error
		says string
	}{
		{"a directory without a manifest", func(t *testing.T, dir string) { t.Helper(); remove(t, dir, setup.ManifestName) }, bundle.ErrPackage, "there is no keryx-package.yaml"},
		{"a symlink to a file", func(t *testing.T, dir string) { t.Helper(); link(t, "/etc/passwd", filepath.Join(dir, "data/x")) }, bundle.ErrPackage, "data/x is a symlink"},
		{"a symlink to a directory", func(t *testing.T, dir string) { t.Helper(); link(t, "/etc", filepath.Join(dir, "data/x")) }, bundle.ErrPackage, "data/x is a symlink"},
		{"a named pipe", func(t *testing.T, dir string) {
			t.Helper()
			if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, bundle.ErrPackage, "pipe is neither"},
		{"an entry point that is not there", func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "bin/setup") }, bundle.ErrPackage, "no file bin/setup"},
		{"an entry point that cannot be run", func(t *testing.T, dir string) {
			t.Helper()
			remove(t, dir, "bin/setup")
			write(t, filepath.Join(dir, "bin/setup"), "data")
		}, bundle.ErrPackage, "not executable"},
		{"an unknown key in the manifest", func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, setup.ManifestName), manifest+"  timout: 3s\n")
		}, setup.ErrManifest, "[8:3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := hello(t)
			c.with(t, dir)
			_, err := bundle.Read(dir)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func TestACopyIsExactlyWhatWasReviewed(t *testing.T) {
	t.Parallel()
	dir := hello(t)
	p, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "copy")
	if err := bundle.Copy(dir, into, p.Files, false); err != nil {
		t.Fatal(err)
	}
	again, err := bundle.Read(into)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p.Files, again.Files); d != "" {
		t.Errorf("copy (-want +got):\n%s", d)
	}
	if info, err := os.Stat(filepath.Join(into, "bin/setup")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("mode of the copy is %v, %v", info.Mode(), err)
	}
}

func TestACopyOfSomethingElseIsRefusedAndTakenAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		with func(t *testing.T, dir string)
		path string
	}{
		{"one byte more", func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "data/a"), "aa") }, "data/a"},
		{"one byte else", func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "data/a"), "b") }, "data/a"},
		{"a file more", func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "data/aa"), "") }, "data/aa"},
		{"a file less", func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "data/a") }, "data/a"},
		{"another mode", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Chmod(filepath.Join(dir, "data/a"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "data/a"},
		{"a symlink in a file's place", func(t *testing.T, dir string) {
			t.Helper()
			remove(t, dir, "data/a")
			link(t, "b/c", filepath.Join(dir, "data/a"))
		}, ""},
		{"a symlink in the directory's place", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Rename(dir, dir+"-moved"); err != nil {
				t.Fatal(err)
			}
			link(t, dir+"-moved", dir)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := hello(t)
			p, err := bundle.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			c.with(t, dir)
			into := filepath.Join(t.TempDir(), "copy")
			err = bundle.Copy(dir, into, p.Files, false)
			changed, ok := errors.AsType[*bundle.ChangedError](err)
			if err == nil || c.path != "" && (!ok || changed.Path != c.path) {
				t.Errorf("error is %v", err)
			}
			if _, err := os.Stat(into); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the copy is still there: %v", err)
			}
		})
	}
}
