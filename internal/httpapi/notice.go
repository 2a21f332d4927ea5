package httpapi

import "sync"

// notice wakes everybody who waits for its next occurrence. The zero value is ready.
type notice struct {
	mu sync.Mutex
	c  chan struct{}
}

// next returns a channel that is closed at the next occurrence. Take it before looking
// at what the notice is about, so that nothing is missed in between.
func (n *notice) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c == nil {
		n.c = make(chan struct{})
	}
	return n.c
}

func (n *notice) fire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c != nil {
		close(n.c)
		n.c = nil
	}
}
