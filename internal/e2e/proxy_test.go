package e2e_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy is a link to the bus that can be slow, swallow what goes through it, or break.
type proxy struct {
	t        *testing.T
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]bool
	delay   time.Duration
	blocked [2]chan struct{} // per direction; closed when it flows again
}

// The directions of a link.
const (
	toBus = iota
	fromBus
)

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, to: to, conns: make(map[net.Conn]bool)}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		p.flow()
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.cut()
		p.work.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		bus, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = c.Close() // as if the bus had refused
			continue
		}
		if !p.keep(c, bus) {
			return
		}
		p.work.Go(func() { p.pump(bus, c, toBus) })
		p.work.Go(func() { p.pump(c, bus, fromBus) })
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.closed
}

// pump hands bytes on as the link is now.
func (p *proxy) pump(to, from net.Conn, way int) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.hinder(way)
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (p *proxy) hinder(way int) {
	p.mu.Lock()
	delay, blocked := p.delay, p.blocked[way]
	p.mu.Unlock()
	if delay > 0 {
		<-time.After(delay)
	}
	if blocked != nil {
		<-blocked
	}
}

// slow delays what goes through from now on.
func (p *proxy) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// block swallows what goes one way, until flow or cut.
func (p *proxy) block(way int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocked[way] == nil {
		p.blocked[way] = make(chan struct{})
	}
}

// flow lets everything through, also what was swallowed on links that are not cut.
func (p *proxy) flow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = 0
	for i, b := range p.blocked {
		if b != nil {
			close(b)
			p.blocked[i] = nil
		}
	}
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}
