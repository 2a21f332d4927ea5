package process

import (
	"errors"
	"os"
	"sync"
)

// maxTyped is how much input may wait for a program that does not read, in bytes.
const maxTyped = 1 << 20

// ErrInputFull says that input was not taken, because the program does not read.
var ErrInputFull = errors.New("input is full")

// ErrLineTooLong says that a part of a line was not taken, because a terminal that edits
// lines takes no more than [MaxLine] bytes of one.
var ErrLineTooLong = errors.New("the line is longer than a terminal takes")

// Typed says how many bytes of one piece of input a terminal took, and why not all: nil,
// [ErrInputFull], [ErrLineTooLong] or [ErrNoTerminal].
type Typed func(taken int, err error)

// typing is input on its way to a program. Its writer runs beside the reader of the
// output, so that a program that writes before it reads cannot lock both up.
type typing struct {
	file *os.File
	line line // used by the writer alone
	wake chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	waiting []typed
	size    int // bytes in waiting
	ended   bool
}

// typed is one piece of input.
type typed struct {
	data []byte
	full bool // more came with it than there was room for
	then Typed
}

func newTyping(f *os.File, first []byte) *typing {
	t := &typing{file: f, wake: make(chan struct{}, 1)}
	if len(first) > 0 {
		t.waiting = []typed{{data: append([]byte(nil), first...)}}
	}
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

// add takes as much of b as fits. then is told what became of it, later.
func (t *typing) add(b []byte, then Typed) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return 0, ErrNoTerminal
	}
	n := min(len(b), max(0, maxTyped-t.size))
	t.waiting = append(t.waiting, typed{append([]byte(nil), b[:n]...), n < len(b), then})
	t.size += n
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
			next, ok := t.next()
			if !ok {
				break
			}
			t.type1(next)
		}
		t.mu.Lock()
		ended := t.ended
		t.mu.Unlock()
		if ended {
			return
		}
	}
}

// next takes the oldest piece that waits. Its bytes count as waiting until it is written.
func (t *typing) next() (typed, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return typed{}, false
	}
	next := t.waiting[0]
	t.waiting = t.waiting[1:]
	return next, true
}

// type1 writes one piece and says what became of it. Where lines are edited, what is
// beyond the longest line is left out here: the kernel would take it and throw it away.
func (t *typing) type1(next typed) {
	taken, cut := 0, false
	var err error
	for rest := next.data; len(rest) > 0 && err == nil; {
		take, leave := t.line.split(modeOf(t.file), rest)
		cut = cut || leave > 0
		var n int
		n, err = t.file.Write(rest[:take])
		taken += n
		rest = rest[take+leave:]
	}
	t.mu.Lock()
	t.size -= len(next.data)
	t.mu.Unlock()
	if next.then != nil {
		next.then(taken, reasonOf(err, next.full, cut))
	}
}

func reasonOf(err error, full, cut bool) error {
	switch {
	case err != nil: // nobody reads any more: the end will come
		return ErrNoTerminal
	case cut:
		return ErrLineTooLong
	case full:
		return ErrInputFull
	}
	return nil
}

// end ends the writing; the file is closed. Whoever still waits for an answer gets it.
func (t *typing) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.nudge()
	t.wg.Wait()
}

// Type types into the process's terminal and returns how much waits to be taken now; it
// does not wait for the program to read it. Errors: [ErrInputFull], [ErrNoTerminal].
func (p *Process) Type(b []byte) (int, error) { return p.TypeThen(b, nil) }

// TypeThen is [Process.Type], and then is told once how much the terminal took, when it
// has, from another goroutine that must not be held up. It is not told when [ErrNoTerminal]
// is returned.
func (p *Process) TypeThen(b []byte, then Typed) (int, error) {
	if p.typing == nil {
		return 0, ErrNoTerminal
	}
	return p.typing.add(b, then)
}
