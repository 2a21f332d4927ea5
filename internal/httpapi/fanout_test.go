package httpapi_test

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/httpapi"
)

// rawStream opens a stream on a connection of its own with a small buffer, so that a
// reader that reads nothing stalls the server soon.
func (e *edge) rawStream(path string) (net.Conn, *bufio.Reader) {
	e.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		e.t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, e.secrets[events.RoleObserver])
	if err != nil {
		e.t.Fatal(err)
	}
	r := bufio.NewReaderSize(conn, 4096)
	for { // the headers, and the comment behind them
		line, err := r.ReadString('\n')
		if err != nil {
			e.t.Fatal(err)
		}
		if strings.HasPrefix(line, ": keryx") {
			return conn, r
		}
	}
}

// fanReaders read one session at once; fanLarge bytes are more than kernels buffer of one
// stream, and than the edge keeps of a session.
const (
	fanReaders = 1000
	fanSmall   = 15
	fanLarge   = 14 << 20
	fanText    = 240 << 10
)

// TestAStalledReaderHoldsUpNobodyAndIsToldOfItsGap has many readers of one session, one of
// which reads nothing until the others have everything. The many take the small events
// alone, so that the speed of the machine is not what is measured.
func TestAStalledReaderHoldsUpNobodyAndIsToldOfItsGap(t *testing.T) { // alone: it compares times
	e := startEdge(t, func(c *httpapi.Config) { c.WriteTime = 5 * time.Minute })
	e.register("web:1")
	const path = "/v1/sessions/web:1/events?after=tip"
	many := &crowd{arrived: make(chan time.Time, fanReaders)}
	for range fanReaders - 2 {
		many.join(e.rawStream(path + "&type=session.aliased"))
	}
	_, along := e.rawStream(path)
	alongside := lines(along, "data: ")
	before := e.fanOut(many, alongside, 0)
	_, stalled := e.rawStream(path)
	heapBefore := heap()
	text := strings.Repeat("x", fanText)
	for i := range fanLarge / fanText {
		r := e.submit("web:1", text)
		<-alongside
		if i%2 == 0 { // taken back, since what waits is bounded too
			do[events.Receipt](e, events.RoleGateway, "POST", "/v1/receipts/"+string(r.ID)+"/cancel", "")
			<-alongside
		}
	}
	after := e.fanOut(many, alongside, fanSmall)
	grown := heap() - heapBefore
	t.Logf("%d readers: the last of them has an event after %s (median), %s beside a stalled one; the heap has grown by %d MiB", fanReaders, before, after, grown>>20)
	if after > 3*before+250*time.Millisecond {
		t.Errorf("beside a stalled reader the others have events after %s (median), else %s", after, before)
	}
	if grown > 96<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	select {
	case <-lines(stalled, "event: gap"):
	case <-time.After(2 * time.Minute): // what kernels have buffered is read first
		t.Error("the stalled reader is told of no gap")
	}
	many.check(t)
}

// crowd are readers that tell when an event has arrived.
type crowd struct {
	arrived chan time.Time
	mu      sync.Mutex
	gaps    int
	size    int
}

func (c *crowd) join(_ net.Conn, r *bufio.Reader) {
	c.size++
	go func() {
		for {
			line, err := r.ReadString('\n')
			switch {
			case err != nil:
				return // the test is over
			case strings.HasPrefix(line, "data: "):
				c.arrived <- time.Now()
			case strings.HasPrefix(line, "event: gap"):
				c.mu.Lock()
				c.gaps++
				c.mu.Unlock()
			}
		}
	}()
}

func (c *crowd) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gaps > 0 {
		t.Errorf("%d readers that read were told of gaps", c.gaps)
	}
}

// fanOut makes small events one after another and returns the median of the times until
// the last of the crowd had one.
func (e *edge) fanOut(c *crowd, along <-chan string, from int) time.Duration {
	e.t.Helper()
	var all []time.Duration
	for i := range fanSmall {
		begun, worst := time.Now(), time.Duration(0)
		_, err := e.operator.Alias(e.t.Context(), "web:1", events.Names{GatewaySessionKey: events.GatewaySessionKey(fmt.Sprint("alias:", from+i))})
		if err != nil {
			e.t.Fatal(err)
		}
		for range c.size {
			select {
			case at := <-c.arrived:
				worst = max(worst, at.Sub(begun))
			case <-time.After(20 * time.Second):
				e.t.Fatal("an event did not arrive everywhere")
			}
		}
		<-along
		all = append(all, worst)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// lines passes on the lines of a stream that begin so, until it ends.
func lines(r *bufio.Reader, prefix string) <-chan string {
	out := make(chan string, 16384)
	go func() {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // the test is over
			}
			if strings.HasPrefix(line, prefix) {
				out <- line[:min(len(line), 64)]
			}
		}
	}()
	return out
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
