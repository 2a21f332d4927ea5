package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Files of the running bus below DIR/run.
const (
	runName    = "run"
	pidName    = "pid"
	urlName    = "url"
	socketName = "operator.sock"
)

// makeDirs makes the bus directory and its run directory, closed to others. A bus
// directory that exists keeps its mode; the run directory must be closed.
func makeDirs(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make bus directory: %w", err)
	}
	run := filepath.Join(dir, runName)
	if err := os.MkdirAll(run, 0o700); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	if err := os.Chmod(run, 0o700); err != nil {
		return fmt.Errorf("close run directory to others: %w", err)
	}
	return nil
}

// writeRun says how to reach this process. It replaces what a killed one left.
func writeRun(dir, url string) error {
	run := filepath.Join(dir, runName)
	for name, text := range map[string]string{pidName: strconv.Itoa(os.Getpid()), urlName: url} {
		if err := writeAtomic(filepath.Join(run, name), []byte(text+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// removeRun removes what writeRun wrote.
func removeRun(dir string) error {
	var errs []error
	for _, name := range []string{pidName, urlName} {
		err := os.Remove(filepath.Join(dir, runName, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove run file: %w", err))
		}
	}
	return errors.Join(errs...)
}
