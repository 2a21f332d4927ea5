package process

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
)

// population is what belongs to one process tree: a control group, or a search. Not safe
// for concurrent use, but await may run beside the others.
type population interface {
	// members returns the living processes, the leader among them. An error says that
	// it is not known whether there are any.
	members() ([]status, error)
	signal(unix.Signal) error
	// certain reports whether it is enough that members found none so often in a row.
	certain(looks int) bool
	// empty says what that proves then.
	empty() events.Cleanup
	// await waits until something may have changed, at most for so long.
	await(time.Duration)
	// remove ends the use. What still runs is left alone.
	remove() error
}

// watch returns a channel on which it says that the population may have changed. stop
// ends that and waits for it.
func watch(p population) (changed <-chan struct{}, stop func()) {
	c, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			p.await(sweepTick)
			select {
			case c <- struct{}{}:
			case <-done:
				return
			}
		}
	})
	return c, func() { close(done); wg.Wait() }
}
