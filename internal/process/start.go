package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Process is a running process tree. It is safe for concurrent use.
type Process struct {
	pid     int
	spec    Spec
	grace   time.Duration
	began   time.Time
	handle  *os.Process
	tree    population
	io      *stdio
	reading *reading
	stops   chan time.Duration // graces; taken by run until done
	done    chan struct{}
	exit    Exit // set before done is closed
	feeding sync.WaitGroup
	typing  *typing // nil without a terminal
}

// Start launches a process tree and returns once it runs. The tree is stopped when ctx
// ends. The caller must call [Process.Wait], which alone waits for all that was begun.
//
// Errors wrap [ErrInvalid] or are a [*LaunchError]; then nothing runs.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	grace, err := graceOf(spec.Grace)
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, &LaunchError{Op: "execute", Name: spec.Argv[0], Err: err}
	}
	p := &Process{spec: spec, grace: grace, stops: make(chan time.Duration), done: make(chan struct{})}
	if err := p.launch(); err != nil {
		return nil, err
	}
	p.feed()
	p.reading = newReading(p.io.out, spec.Output)
	go p.run(ctx)
	return p, nil
}

func (p *Process) launch() error {
	if err := checkDir(p.spec.Dir); err != nil {
		return err
	}
	file, err := lookUp(p.spec.Argv[0], p.spec.Env, p.spec.Dir)
	if err != nil {
		return err
	}
	if err := sealDescriptors(); err != nil {
		return &LaunchError{Op: "execute", Name: p.spec.Argv[0], Err: err}
	}
	if p.io, err = openStdio(p.spec); err != nil {
		return &LaunchError{Op: "execute", Name: p.spec.Argv[0], Err: err}
	}
	err = p.fork(file)
	p.io.closeChildren()
	if err != nil {
		p.io.close()
		return &LaunchError{Op: "execute", Name: p.spec.Argv[0], Err: reason(err)}
	}
	return nil
}

// fork starts the leader in a leaf of its own, or tagged where no leaf can be had.
func (p *Process) fork(file string) error {
	p.began = time.Now()
	l, err := p.leaf()
	if err != nil {
		return err
	}
	if l != nil {
		err := p.forkInto(file, l)
		if err == nil {
			return nil
		}
		_ = l.remove()
		if p.spec.Limits != nil {
			return err
		}
		// Whether the leaf or the command was at fault shows without the leaf.
	}
	t := newTag()
	leaders.fork.Lock()
	defer leaders.fork.Unlock()
	t = t.with(func() { err = p.spawn(file, nil) })
	if err != nil {
		return err
	}
	p.tree, err = newTree(p.pid, p.spec.Mark, t)
	if err != nil {
		// Without /proc nothing could be proved about the tree: it must not run.
		_ = p.handle.Kill()
		_, _ = p.handle.Wait()
		delete(leaders.pids, p.pid)
	}
	return err
}

// leaf returns a leaf, or nil if there are no groups or they cannot be written now. It
// returns an error where limits would not be enforced without.
func (p *Process) leaf() (*leaf, error) {
	limits := p.spec.Limits
	if p.spec.Groups == nil {
		if limits != nil {
			return nil, fmt.Errorf("%w: no control groups", ErrNoLimits)
		}
		return nil, nil
	}
	l, err := p.spec.Groups.leaf(p.spec.Group, limits)
	if err != nil && limits != nil {
		return nil, err
	}
	return l, nil
}

func (p *Process) forkInto(file string, l *leaf) error {
	defer l.closeFD()
	leaders.fork.Lock()
	defer leaders.fork.Unlock()
	if err := p.spawn(file, l); err != nil {
		return err
	}
	p.tree = l
	return nil
}

// spawn needs leaders.fork held.
func (p *Process) spawn(file string, into *leaf) error {
	env := p.spec.Env
	if env == nil {
		env = []string{} // nil would mean our own
	}
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: p.spec.Terminal != nil} // Ctty 0: its stdin
	if u := p.spec.User; u != nil {
		sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	if into != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, into.fd
	}
	handle, err := os.StartProcess(file, p.spec.Argv, &os.ProcAttr{
		Dir: p.spec.Dir, Env: env, Files: slices.Concat(p.io.children, p.spec.Extra), Sys: sys,
	})
	if err != nil {
		return err
	}
	p.handle, p.pid = handle, handle.Pid
	leaders.pids[p.pid] = true
	return nil
}

// reason strips the path that os adds to a system's error.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// feed writes stdin. It ends when all is written, the reader is gone, or the pipe is
// closed at the end of the process.
func (p *Process) feed() {
	if p.spec.Terminal != nil {
		p.typing = newTyping(p.io.out[Terminal], p.spec.Stdin)
	}
	if p.io.stdin == nil {
		return
	}
	p.feeding.Go(func() {
		// A process that does not read its input is no fault.
		_, _ = p.io.stdin.Write(p.spec.Stdin)
		_ = p.io.stdin.Close()
	})
}

// PID returns the leader's process id.
func (p *Process) PID() int { return p.pid }

// Done is closed when the tree has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the tree has ended and returns how.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// Stop asks for the end: TERM now, KILL after grace; it does not wait. Nil means
// [DefaultGrace], 0 KILL at once; a negative one is refused with [ErrInvalid]. A
// second Stop can shorten the grace of the first, never lengthen it. After the end it
// does nothing.
func (p *Process) Stop(grace *time.Duration) error {
	g, err := graceOf(grace)
	if err != nil {
		return err
	}
	select {
	case p.stops <- g:
	case <-p.done:
	}
	return nil
}
