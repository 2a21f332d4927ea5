package process

import (
	"errors"
	"fmt"
	"os"
	"sync"

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

// maxTyped is how much input may wait for a program that does not read, in bytes.
const maxTyped = 1 << 20

// ErrInputFull says that input was not taken, because the program does not read.
var ErrInputFull = errors.New("input is full")

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

// typing is input on its way to a program. Its writer runs beside the reader of the
// output, so that a program that writes before it reads cannot lock both up.
type typing struct {
	file *os.File
	wake chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	waiting []byte
	ended   bool
}

func newTyping(f *os.File, first []byte) *typing {
	t := &typing{file: f, wake: make(chan struct{}, 1), waiting: append([]byte(nil), first...)}
	t.wg.Go(t.write)
	t.nudge()
	return t
}

func (t *typing) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// add takes as much of b as fits.
func (t *typing) add(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return 0, ErrNoTerminal
	}
	n := min(len(b), max(0, maxTyped-len(t.waiting)))
	t.waiting = append(t.waiting, b[:n]...)
	t.nudge()
	if n < len(b) {
		return n, ErrInputFull
	}
	return n, nil
}

// write writes until end was called, which closes the file before.
func (t *typing) write() {
	for range t.wake {
		for {
			t.mu.Lock()
			next, ended := t.waiting, t.ended
			t.waiting = nil
			t.mu.Unlock()
			if ended {
				return
			}
			if len(next) == 0 {
				break
			}
			if _, err := t.file.Write(next); err != nil {
				break // nobody reads any more: the end will come
			}
		}
	}
}

// end ends the writing; the file is closed.
func (t *typing) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.nudge()
	t.wg.Wait()
}

// Type types into the process's terminal and returns how much was taken; it does not wait
// for the program to read it. Errors: [ErrInputFull], [ErrNoTerminal].
func (p *Process) Type(b []byte) (int, error) {
	if p.typing == nil {
		return 0, ErrNoTerminal
	}
	return p.typing.add(b)
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
