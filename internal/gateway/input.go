package gateway

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrClosed is returned by [Input.Read] after [Input.Close].
var ErrClosed = errors.New("input closed")

// Input reads a file such as standard input so that a blocked read can be ended, which
// closing the file itself does not do for terminals and some pipes.
type Input struct {
	f          *os.File
	wake, poke *os.File // a pipe: poke is written to end a read
}

// NewInput returns an input over f, which stays the caller's. Close it to end reads and
// free what it holds.
func NewInput(f *os.File) (*Input, error) {
	wake, poke, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open input: %w", err)
	}
	return &Input{f: f, wake: wake, poke: poke}, nil
}

// Read implements io.Reader. It returns [ErrClosed] once Close was called.
func (in *Input) Read(p []byte) (int, error) {
	closed, err := in.wait()
	if err != nil {
		return 0, fmt.Errorf("wait for input: %w", err)
	}
	if closed {
		return 0, ErrClosed
	}
	n, err := in.f.Read(p)
	if errors.Is(err, unix.EIO) { // a terminal that was hung up
		return n, io.EOF
	}
	return n, err
}

// wait blocks until f can be read or the input is closed.
func (in *Input) wait() (closed bool, err error) {
	raw, err := in.f.SyscallConn()
	if err != nil {
		return false, err
	}
	wake, err := in.wake.SyscallConn()
	if err != nil {
		return true, nil // closed
	}
	var pollErr error
	// The descriptors are only borrowed: taking them by Fd would change their mode.
	err = raw.Control(func(fd uintptr) {
		if wake.Control(func(wakeFD uintptr) { closed, pollErr = poll(int32(fd), int32(wakeFD)) }) != nil {
			closed = true
		}
	})
	return closed, errors.Join(err, pollErr)
}

func poll(fd, wake int32) (closed bool, err error) {
	for {
		fds := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}, {Fd: wake, Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return fds[1].Revents != 0, err
	}
}

// Close ends a blocked Read and every later one. It does not close the file.
func (in *Input) Close() error {
	if err := in.poke.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close input: %w", err)
	}
	return nil
}
