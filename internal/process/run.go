package process

import (
	"context"
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
)

// Bounds of the end of a process.
const (
	// drainQuiet is how long output must be silent after the leader's exit before what
	// holds the pipes is taken for a background child.
	drainQuiet = 100 * time.Millisecond
	// drainLimit bounds the wait for silence.
	drainLimit = 500 * time.Millisecond
	drainTick  = 10 * time.Millisecond
	// sweepTick is how often the tree is looked at while its rest is ending.
	sweepTick = 10 * time.Millisecond
	// sweepLimit is how long killed processes get to be gone before they count as left.
	sweepLimit = 2 * time.Second
)

// stopper is the ladder of a stop: TERM, grace, KILL. The zero value has not begun.
type stopper struct {
	tree   population
	timer  *time.Timer
	hangUp bool      // there is a terminal: its shells heed HUP, not TERM
	due    time.Time // of KILL; zero before the first stop
	killed bool
}

func newStopper(t population) *stopper {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &stopper{tree: t, timer: timer}
}

// stop begins the ladder, or shortens the one begun.
func (s *stopper) stop(grace time.Duration) {
	due := time.Now().Add(grace)
	first := s.due.IsZero()
	if !first && !due.Before(s.due) {
		return
	}
	s.due = due
	if grace == 0 {
		s.kill()
		return
	}
	if first {
		// What cannot be signalled shows as left at the end.
		_ = s.tree.signal(unix.SIGTERM)
		if s.hangUp {
			_ = s.tree.signal(unix.SIGHUP)
			_ = s.tree.signal(unix.SIGCONT) // one that was stopped from the keyboard
		}
	}
	s.timer.Reset(grace)
}

func (s *stopper) kill() {
	s.killed = true
	_ = s.tree.signal(unix.SIGKILL)
}

// run sees the process to its end.
func (p *Process) run(ctx context.Context) {
	defer close(p.done)
	ladder := newStopper(p.tree)
	ladder.hangUp = p.spec.Terminal != nil
	defer ladder.timer.Stop()
	p.awaitExit(ctx, ladder)
	close(p.reading.exited)
	p.exit.Duration = time.Since(p.began)
	p.drain(ladder)
	if p.spec.Terminal != nil {
		p.reading.close() // which hangs up what is left
	} else {
		// What is left has time to end in order: it is not to die of SIGPIPE meanwhile.
		p.reading.discard()
	}
	p.endFeed()
	p.sweep(ladder)
	p.reading.close()
	p.reap()
}

// awaitExit waits until the leader has exited, without reaping it, and stops the tree
// when it is told to or its time is over.
func (p *Process) awaitExit(ctx context.Context, ladder *stopper) {
	exited := make(chan struct{})
	go func() { awaitZombie(p.pid); close(exited) }()
	var over <-chan time.Time
	if p.spec.Timeout > 0 {
		t := time.NewTimer(p.spec.Timeout)
		defer t.Stop()
		over = t.C
	}
	cancelled := ctx.Done()
	for {
		select {
		case <-exited:
			return
		case <-over:
			p.exit.TimedOut = true
			ladder.stop(p.grace)
		case <-cancelled:
			cancelled = nil
			p.exit.Stopped = true
			ladder.stop(p.grace)
		case g := <-p.stops:
			p.exit.Stopped = true
			ladder.stop(g)
		case <-ladder.timer.C:
			ladder.kill()
		}
	}
}

// awaitZombie returns when a child has exited, and leaves it unreaped.
func awaitZombie(pid int) {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// drain waits for the output to end: at once when nobody holds the pipes, else until
// what the leader had written was read and the rest was quiet, or the limit is reached.
func (p *Process) drain(ladder *stopper) {
	began := time.Now()
	tick := time.NewTicker(drainTick)
	defer tick.Stop()
	until, known := p.reading.pending()
	for {
		select {
		case <-p.reading.ended:
			return
		case g := <-p.stops:
			ladder.stop(g)
		case <-ladder.timer.C:
			ladder.kill()
		case <-tick.C:
			if !known {
				until, known = p.reading.pending()
				continue
			}
			last, reached := p.reading.reached(until)
			if reached && (quietFor(began, last) >= drainQuiet || time.Since(began) >= drainLimit) {
				return
			}
		}
	}
}

func quietFor(began, last time.Time) time.Duration {
	if last.After(began) {
		began = last
	}
	return time.Since(began)
}

// endFeed ends the writing of stdin, which nobody reads any more.
func (p *Process) endFeed() {
	if p.typing != nil {
		p.typing.end()
	}
	if p.io.stdin != nil {
		_ = p.io.stdin.Close()
	}
	p.feeding.Wait()
}

// sweep stops what is left of the tree and records what is known of it then.
func (p *Process) sweep(ladder *stopper) {
	left, err := p.look()
	if p.spec.Leave {
		p.conclude(left, err)
		return
	}
	if len(left) > 0 || err != nil {
		left, err = p.stopRest(ladder)
	}
	p.conclude(left, err)
	// A leaf that cannot be removed although it is empty costs nothing but its name.
	_ = p.tree.remove()
}

// look looks as often as it takes to say that nothing runs.
func (p *Process) look() (left []status, err error) {
	for looks := 1; ; looks++ {
		if left, err = p.tree.members(); len(left) > 0 || err != nil {
			return left, err
		}
		if p.tree.certain(looks) {
			return nil, nil
		}
		if looks > 1 {
			p.tree.await(sweepTick)
		}
	}
}

// conclude records what is known of the tree at the end.
func (p *Process) conclude(left []status, err error) {
	p.exit.Cleanup = p.tree.empty()
	if err != nil || len(left) > 0 {
		p.exit.Cleanup = events.CleanupLeft
	}
	for _, m := range left {
		p.exit.LeftPIDs = append(p.exit.LeftPIDs, m.pid)
	}
}

// stopRest goes down the ladder until the tree is empty, or what was killed is not gone
// within the limit. Killing is repeated, for what was forked meanwhile.
func (p *Process) stopRest(ladder *stopper) (left []status, err error) {
	if ladder.due.IsZero() {
		ladder.stop(p.grace)
	}
	changed, stop := watch(p.tree)
	defer stop()
	var limit time.Time
	for empty := 0; ; {
		select {
		case g := <-p.stops:
			ladder.stop(g)
		case <-ladder.timer.C:
			ladder.kill()
		case <-changed:
		}
		left, err = p.tree.members()
		if err == nil && len(left) == 0 {
			if empty++; p.tree.certain(empty) {
				return nil, nil
			}
			continue
		}
		empty = 0
		if !ladder.killed {
			continue
		}
		if limit.IsZero() {
			limit = time.Now().Add(sweepLimit)
		}
		if time.Now().After(limit) {
			return left, err
		}
		ladder.kill()
	}
}

// reap takes the leader's exit status; from here on its pid may be another's.
func (p *Process) reap() {
	defer leaders.remove(p.pid)
	p.exit.Code = -1
	state, err := p.handle.Wait()
	if err != nil {
		return // somebody else reaped it: how it ended is not known
	}
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		p.exit.Signal = unix.SignalName(ws.Signal())
		return
	}
	p.exit.Code = state.ExitCode()
}
