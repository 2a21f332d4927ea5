package main

import (
	"golang.org/x/sys/unix"

	"keryx/events"
	"keryx/internal/cli"
)

// exitTimeout is the exit code after a timeout, as of timeout(1).
const exitTimeout = 124

// exitOf makes a command's end the end of this program.
func exitOf(e events.ExecExited) error {
	code := e.ExitCode
	switch {
	case e.TimedOut:
		code = exitTimeout
	case e.Signal != "":
		code = cli.ExitSignal + int(unix.SignalNum(e.Signal))
	}
	if code == 0 {
		return nil
	}
	return &cli.ExitError{Code: code}
}
