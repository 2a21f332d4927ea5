package process

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reading reads the output streams. A read and the delivery of what it got are one step
// under mu, so that pieces are delivered in the order in which they were read.
type reading struct {
	sink  func(Stream, []byte)
	files [streams]*os.File // nil for streams that there are not
	wg    sync.WaitGroup
	ended chan struct{} // closed when all streams have ended
	// exited is closed when the leader has exited: only then is a terminal that nobody
	// holds open at its end.
	exited chan struct{}

	mu    sync.Mutex
	buf   []byte
	total [streams]int64
	last  time.Time // when the sink returned last
}

// reopenTick is how often a terminal that nobody has open is looked at.
const reopenTick = 20 * time.Millisecond

func newReading(files [streams]*os.File, sink func(Stream, []byte)) *reading {
	if sink == nil {
		sink = func(Stream, []byte) {}
	}
	r := &reading{
		sink: sink, files: files, buf: make([]byte, MaxRead),
		ended: make(chan struct{}), exited: make(chan struct{}),
	}
	for s, f := range files {
		if f != nil {
			r.wg.Go(func() { r.read(Stream(s)) })
		}
	}
	go func() { r.wg.Wait(); close(r.ended) }()
	return r
}

// read reads one stream to its end: nobody holds it open any more, or close was called.
func (r *reading) read(s Stream) {
	conn, err := r.files[s].SyscallConn()
	if err != nil {
		return
	}
	for last := false; ; {
		ended := false
		// An error means the file was closed under us; the pipe itself has no others.
		if err := conn.Read(func(fd uintptr) (done bool) {
			done, ended = r.step(s, int(fd))
			return done
		}); err != nil {
			return
		}
		if !ended {
			continue
		}
		if s != Terminal || last {
			return
		}
		last = r.reopened()
	}
}

// reopened waits after the end of a terminal: it ends, with EIO, whenever nobody has it
// open, and may be opened again while the leader runs. last says that the leader has
// exited, so that the next end counts.
func (r *reading) reopened() (last bool) {
	t := time.NewTimer(reopenTick)
	defer t.Stop()
	select {
	case <-r.exited:
		return true
	case <-t.C:
		return false
	}
}

// step reads once. done is false when there was nothing to read.
func (r *reading) step(s Stream, fd int) (done, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == Stderr {
		r.readFirst(Stdout)
	}
	n, err := unix.Read(fd, r.buf)
	switch {
	case errors.Is(err, unix.EINTR):
		return true, false
	case errors.Is(err, unix.EAGAIN):
		return false, false
	case err != nil || n == 0:
		return true, true
	}
	r.deliver(s, n)
	return true, false
}

// readFirst reads what waits in the other stream. Which of two that wait was written
// first cannot be known; that it is always the same one read first makes "echo a; echo
// b >&2" come out in that order, and not by chance.
func (r *reading) readFirst(s Stream) {
	conn, err := r.files[s].SyscallConn()
	if err != nil {
		return
	}
	// An error, or an end, is for the stream's own reader to see.
	_ = conn.Control(func(fd uintptr) {
		if n, err := unix.Read(int(fd), r.buf); err == nil && n > 0 {
			r.deliver(s, n)
		}
	})
}

// deliver needs mu held.
func (r *reading) deliver(s Stream, n int) {
	r.total[s] += int64(n)
	r.sink(s, r.buf[:n])
	r.last = time.Now()
}

// discard throws away what comes from now on.
func (r *reading) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sink = func(Stream, []byte) {}
}

// close ends the reading and waits until the last piece was delivered.
func (r *reading) close() {
	for _, f := range r.files {
		if f != nil {
			_ = f.Close()
		}
	}
	<-r.ended
}

// pending returns how much will have been read in total of each stream once what is in
// the pipes now was read. ok is false while a piece is being delivered.
func (r *reading) pending() (until [streams]int64, ok bool) {
	if !r.mu.TryLock() {
		return until, false
	}
	defer r.mu.Unlock()
	for s, f := range r.files {
		if f != nil {
			until[s] = r.total[s] + waiting(f)
		}
	}
	return until, true
}

// waiting returns how many bytes are in a pipe (FIONREAD, which Linux also calls TIOCINQ).
func waiting(f *os.File) (n int64) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) {
		if v, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			n = int64(v)
		}
	})
	return n
}

// reached reports whether each stream was read up to until, and when the last piece was
// delivered. ok is false while a piece is being delivered.
func (r *reading) reached(until [streams]int64) (last time.Time, ok bool) {
	if !r.mu.TryLock() {
		return time.Time{}, false
	}
	defer r.mu.Unlock()
	for s := range r.files {
		if r.total[s] < until[s] {
			return time.Time{}, false
		}
	}
	return r.last, true
}
