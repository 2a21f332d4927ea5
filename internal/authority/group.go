package authority

import "sync"

// group runs goroutines until it is closed, and waits for them. Unlike a WaitGroup it
// may be given work while somebody waits; it refuses work once it is closed.
type group struct {
	mu     sync.Mutex
	idle   *sync.Cond // of mu: n is 0
	n      int
	closed bool
}

func newGroup() *group {
	g := &group{}
	g.idle = sync.NewCond(&g.mu)
	return g
}

// start runs fn on a goroutine; it reports false, and runs nothing, if g is closed.
func (g *group) start(fn func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	go func() {
		defer g.done()
		fn()
	}()
	return true
}

func (g *group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 {
		g.idle.Broadcast()
	}
}

// wait waits until nothing runs.
func (g *group) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.n > 0 {
		g.idle.Wait()
	}
}

// close refuses further work and waits for what runs.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wait()
}
