package privdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"keryx/events"
	"keryx/internal/privdir"
)

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dir makes a directory below at, with its parents.
func dir(at, name string, mode os.FileMode) (string, error) {
	path := filepath.Join(at, name)
	return path, errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, mode))
}

// base is a directory that only this user can change. It is not t.TempDir, whose mode is
// the umask's business.
func base(t *testing.T) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(t.TempDir())
	do(t, err)
	do(t, os.Chmod(real, 0o755))
	do(t, os.Chmod(filepath.Dir(real), 0o755))
	return real
}

// stranger is an owner that is neither this user nor root.
func stranger() privdir.Owner {
	o := privdir.Self()
	o.UID += 12345
	return o
}

func TestCheck_refuses_each_fault_with_a_code_of_its_own(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make  func(at string) (string, error)
		owner func() privdir.Owner
		code  events.Code
	}{
		"a private directory": {make: func(at string) (string, error) { return dir(at, "run", 0o700) }},
		"one that is not there": {
			make: func(at string) (string, error) { return at + "/none", nil }, code: events.CodeRuntimeDirMissing,
		},
		"a file": {make: func(at string) (string, error) {
			return at + "/file", os.WriteFile(at+"/file", nil, 0o600)
		}, code: events.CodeRuntimeDirMissing},
		"one that the group can read": {
			make: func(at string) (string, error) { return dir(at, "run", 0o750) }, code: events.CodeRuntimeDirExposed,
		},
		"one that others can enter": {
			make: func(at string) (string, error) { return dir(at, "run", 0o701) }, code: events.CodeRuntimeDirExposed,
		},
		"one of another user": {
			make: func(at string) (string, error) { return dir(at, "run", 0o700) }, owner: stranger, code: foreignCode(),
		},
		"a symbolic link": {make: func(at string) (string, error) {
			real, err := dir(at, "real", 0o700)
			return at + "/run", errors.Join(err, os.Symlink(real, at+"/run"))
		}, code: events.CodeRuntimeDirSymlink},
		"one behind a symbolic link": {make: func(at string) (string, error) {
			_, err := dir(at, "real/run", 0o700)
			return at + "/link/run", errors.Join(err, os.Symlink(at+"/real", at+"/link"))
		}, code: events.CodeRuntimeDirSymlink},
		"one in a directory that others can write": {make: func(at string) (string, error) {
			run, err := dir(at, "open/run", 0o700)
			return run, errors.Join(err, os.Chmod(at+"/open", 0o777))
		}, code: events.CodeRuntimeDirExposed},
		"one in a sticky directory that others can write": {make: func(at string) (string, error) {
			run, err := dir(at, "tmp/run", 0o700)
			return run, errors.Join(err, os.Chmod(at+"/tmp", 0o777|os.ModeSticky))
		}},
		"a relative path": {make: func(string) (string, error) { return "run", nil }, code: events.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := privdir.Self()
			if c.owner != nil {
				owner = c.owner()
			}
			path, err := c.make(base(t))
			do(t, err)
			err = privdir.Check(path, owner)
			if c.code == "" && err != nil || c.code != "" && events.CodeOf(err) != c.code {
				t.Errorf("got %v, want %q", err, c.code)
			}
		})
	}
}

// foreignCode is how a directory of this user is refused to another one: unless this user
// is root, the directories above it are in this user's hands already.
func foreignCode() events.Code {
	if os.Geteuid() == 0 {
		return events.CodeRuntimeDirForeign
	}
	return events.CodeRuntimeDirExposed
}

func TestCheck_sees_a_directory_that_was_replaced_by_a_link(t *testing.T) {
	t.Parallel()
	at := base(t)
	run, err := dir(at, "run", 0o700)
	do(t, err)
	do(t, privdir.Check(run, privdir.Self()))
	do(t, os.Rename(run, at+"/moved"))
	do(t, os.Symlink(at+"/moved", run))
	if err := privdir.Check(run, privdir.Self()); events.CodeOf(err) != events.CodeRuntimeDirSymlink {
		t.Errorf("got %v", err)
	}
}

func TestBelow_makes_a_directory_once_and_refuses_what_is_not_private(t *testing.T) {
	t.Parallel()
	at := base(t)
	for range 2 {
		got, err := privdir.Below(at, "s1", privdir.Self())
		do(t, err)
		do(t, privdir.Check(got, privdir.Self()))
	}
	do(t, os.Symlink(at+"/s1", at+"/s2"))
	if _, err := privdir.Below(at, "s2", privdir.Self()); events.CodeOf(err) != events.CodeRuntimeDirSymlink {
		t.Errorf("a link: %v", err)
	}
	do(t, os.Mkdir(at+"/s3", 0o755))
	do(t, os.Chmod(at+"/s3", 0o755))
	if _, err := privdir.Below(at, "s3", privdir.Self()); events.CodeOf(err) != events.CodeRuntimeDirExposed {
		t.Errorf("one that others can read: %v", err)
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\x00"} {
		if _, err := privdir.Below(at, name, privdir.Self()); events.CodeOf(err) != events.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	do(t, os.Chmod(at, 0o777))
	if _, err := privdir.Below(at, "s4", privdir.Self()); events.CodeOf(err) != events.CodeRuntimeDirExposed {
		t.Errorf("a root that others can write: %v", err)
	}
}

func TestUnsupported_says_what_to_do(t *testing.T) {
	t.Parallel()
	if err := privdir.Unsupported("/run/x"); events.CodeOf(err) != events.CodeRuntimeDirUnsupported {
		t.Errorf("got %v", err)
	}
}
