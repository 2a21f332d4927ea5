package process

import (
	"errors"
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Size is the size of a terminal in characters.
type Size struct{ Rows, Cols int }

func (s Size) validate() error {
	const most = 1<<16 - 1
	if s.Rows < 1 || s.Cols < 1 || s.Rows > most || s.Cols > most {
		return invalid("a terminal of %d rows and %d columns", s.Rows, s.Cols)
	}
	return nil
}

// ErrNoTerminal says that a process has no terminal, or none any more.
var ErrNoTerminal = errors.New("no terminal")

// openTerminal opens a terminal of a size. Our end does not block, so that closing it
// wakes whoever reads or writes; the child's end does, as programs expect.
func openTerminal(size Size) (ours, theirs *os.File, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	defer master.Close()
	fd, err := duplicate(master)
	if err != nil {
		_ = slave.Close()
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	err = errors.Join(unix.SetNonblock(fd, true), setSize(fd, size), blocking(slave))
	if err != nil {
		_ = unix.Close(fd)
		_ = slave.Close()
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), slave, nil
}

// duplicate returns another descriptor of f. That of f itself was made blocking by
// whoever asked for it, and so it stays as long as the runtime knows it.
func duplicate(f *os.File) (fd int, err error) {
	err = control(f, func(own int) (err error) {
		fd, err = unix.FcntlInt(uintptr(own), unix.F_DUPFD_CLOEXEC, firstExtra)
		return err
	})
	return fd, err
}

func blocking(f *os.File) error {
	return control(f, func(fd int) error { return unix.SetNonblock(fd, false) })
}

func setSize(fd int, s Size) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(s.Rows), Col: uint16(s.Cols)}) //nolint:gosec // validated
}

// control calls f with the descriptor of a file, which stays open and as it is meanwhile.
func control(file *os.File, f func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// Resize changes the size of the process's terminal; its foreground group gets SIGWINCH
// if that is news. Errors: [ErrInvalid], [ErrNoTerminal].
func (p *Process) Resize(s Size) error {
	if err := s.validate(); err != nil {
		return err
	}
	if p.typing == nil {
		return ErrNoTerminal
	}
	if err := control(p.typing.file, func(fd int) error { return setSize(fd, s) }); err != nil {
		select {
		case <-p.reading.ended: // and the file closed
			return ErrNoTerminal
		default:
			return fmt.Errorf("resize terminal: %w", err)
		}
	}
	return nil
}
