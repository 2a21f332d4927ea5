package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultPath is searched when the environment has no PATH, as execvp does.
const defaultPath = "/usr/bin:/bin"

// lookUp returns the file to execute for name: itself if it has a slash, else the first
// executable in the PATH of env. Relative entries are relative to dir, where the child
// will be.
func lookUp(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	reason := fs.ErrNotExist
	for _, entry := range filepath.SplitList(pathOf(env)) {
		if !filepath.IsAbs(entry) {
			entry = filepath.Join(dir, entry)
		}
		file := filepath.Join(entry, name)
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			reason = err
		}
	}
	return "", &LaunchError{Op: "look up command", Name: name, Err: reason}
}

// pathOf returns the last PATH of env, which is the one that most programs see.
func pathOf(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return v
		}
	}
	return defaultPath
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fs.ErrPermission
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}

// checkDir tells a missing working directory from a missing command: both are ENOENT
// when the child fails.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, dir, unix.X_OK, unix.AT_EACCESS)
	}
	if err == nil {
		return nil
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return &LaunchError{Op: "enter directory", Name: dir, Err: err}
}
