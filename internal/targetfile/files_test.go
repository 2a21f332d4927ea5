package targetfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/internal/targetfile"
)

// directory is a directory of target files with what was loaded of it last.
type directory struct {
	t     *testing.T
	files targetfile.Files
}

func (d *directory) write(name, text string) {
	d.t.Helper()
	write(d.t, filepath.Join(d.files.Dir, name), text)
}

func (d *directory) remove(name string) {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.files.Dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

// want loads and compares "name cwd" and, with "!", that it is broken; and the errors.
func (d *directory) want(targets []string, errs ...string) {
	d.t.Helper()
	all, failed := d.files.Load()
	var got []string
	for _, x := range all {
		text := string(x.Spec.Name) + " " + x.Spec.Cwd
		if x.Broken != nil {
			text += " !"
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(targets, got); diff != "" {
		d.t.Errorf("declared (-want +got):\n%s", diff)
	}
	if len(failed) != len(errs) {
		d.t.Fatalf("errors: %v, want %q", failed, errs)
	}
	for i, e := range errs {
		if !strings.Contains(failed[i].Error(), e) {
			d.t.Errorf("error %v, want %q", failed[i], e)
		}
	}
}

func TestFiles_keep_the_last_good_version(t *testing.T) {
	t.Parallel()
	d := &directory{t: t, files: targetfile.Files{Dir: t.TempDir()}}
	d.want(nil)
	d.write("a.yaml", "name: a\ncwd: /1\n")
	d.write("b.yml", "name: b\ncwd: /1\n")
	d.write("README", "not a target")
	d.write(".hidden.yaml", "nor this")
	d.want([]string{"a /1", "b /1"})
	d.write("a.yaml", "name: a\ncwd: /2\n")
	d.want([]string{"a /2", "b /1"})
	d.write("a.yaml", "name: a\ncwd: 3\n")
	d.want([]string{"a /2 !", "b /1"}, "a.yaml:2:6: ")
	d.write("a.yaml", "name: a\ncwd: /2\n")
	d.want([]string{"a /2", "b /1"})
	d.write("a.yaml", "name: c\ncwd: /2\n") // renamed
	d.want([]string{"b /1", "c /2"})
	d.remove("b.yml")
	d.want([]string{"c /2"})
}

func TestFiles_that_were_never_good_declare_nothing(t *testing.T) {
	t.Parallel()
	d := &directory{t: t, files: targetfile.Files{Dir: t.TempDir()}}
	d.write("a.yaml", "name: a\n")
	d.write("b.yaml", "label: b\n")
	d.want([]string{"a "}, "b.yaml:1:1: ")
}

func TestFiles_with_one_name_are_a_fault_of_the_newcomer(t *testing.T) {
	t.Parallel()
	d := &directory{t: t, files: targetfile.Files{Dir: t.TempDir()}}
	d.write("b.yaml", "name: x\ncwd: /b\n")
	d.want([]string{"x /b"})
	d.write("a.yaml", "name: x\ncwd: /a\n")
	d.want([]string{"x /b"}, `a.yaml: target "x" is declared by `)
	d.write("a.yaml", "name: y\ncwd: /a\n")
	d.want([]string{"x /b", "y /a"})
	d.write("b.yaml", "name: y\ncwd: /b\n") // takes y's name: keeps what it had
	d.want([]string{"x /b !", "y /a"}, `b.yaml: target "y" is declared by `)
	d.remove("a.yaml")
	d.want([]string{"y /b"})
}

func TestFiles_of_a_directory_that_cannot_be_read_stay(t *testing.T) {
	t.Parallel()
	d := &directory{t: t, files: targetfile.Files{Dir: filepath.Join(t.TempDir(), "targets")}}
	if err := os.Mkdir(d.files.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d.write("a.yaml", "name: a\n")
	d.want([]string{"a "})
	if err := os.Rename(d.files.Dir, d.files.Dir+"2"); err != nil {
		t.Fatal(err)
	}
	write(t, d.files.Dir, "now a file")
	d.want([]string{"a "}, "not a directory")
}
