package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"keryx/events"
)

// mortal keeps a bus of this test binary running: one that is killed in the middle of an
// append's consequences is started again.
type mortal struct {
	*bench
	fatal  string // file with the sequence at which it dies
	deaths int
	mu     sync.Mutex
	stop   chan struct{}
	done   sync.WaitGroup
}

func newMortal(b *bench) *mortal {
	m := &mortal{bench: b, fatal: filepath.Join(b.dir, "fatal"), stop: make(chan struct{})}
	first := m.birth()
	m.done.Go(func() {
		for p := first; ; p = m.birth() {
			select {
			case <-p.done:
				m.mu.Lock()
				m.deaths++
				m.mu.Unlock()
			case <-m.stop:
				return
			}
		}
	})
	b.t.Cleanup(func() { close(m.stop); m.done.Wait() })
	return m
}

func (m *mortal) birth() *process {
	self, err := os.Executable()
	if err != nil {
		m.t.Error(err)
	}
	return m.startPath([]string{roleVar + "=bus", dirVar + "=" + m.store(), addrVar + "=" + m.addr, fatalVar + "=" + m.fatal}, "", self)
}

// dieAt lets the bus be killed when a sequence is on disk.
func (m *mortal) dieAt(s events.Sequence) {
	m.t.Helper()
	if err := os.WriteFile(m.fatal+".new", []byte(strconv.FormatUint(uint64(s), 10)), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(m.fatal+".new", m.fatal); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mortal) died() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deaths
}

// tip is the last sequence of all.
func (g *gateway) tip() (last events.Sequence) {
	g.t.Helper()
	tips, err := g.Tips(g.within(20 * time.Second))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, t := range tips {
		last = max(last, t.Sequence)
	}
	return last
}

func TestABusKilledAfterEachWriteBeforeItsConsequencesLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := newMortal(b)
	b.listening()
	g := b.gateway()
	host := b.jsHost()
	const enough = 40
	for n := 1; n < enough; n++ {
		before := m.died()
		m.dieAt(g.tip() + events.Sequence(n))
		key := fmt.Sprint("k:", n)
		id := g.register(events.GatewaySessionKey(key))
		listening := g.say(key, "listen", events.ModeEnqueue)
		g.reaches(listening, events.StateAccepted)
		steer := g.say(key, "left", events.ModeSteer)
		g.wants(listening, events.OutcomeCompleted, "heard left")
		g.wants(steer, events.OutcomeCompleted, "heard left")
		b.await("the session to be idle", 20*time.Second, func() bool {
			return len(g.record(id, events.TypeSessionIdle)) == 1
		})
		if begun := host.did("begin")[string(listening)]; begun != 1 {
			t.Errorf("write %d: the message was begun %d times", n, begun)
		}
		if lost := g.record(id, events.TypeContinuationUnresolved, events.TypeSessionDetached, events.TypeTurnReportedLate); len(lost) > 0 {
			t.Errorf("write %d: %s is on record", n, lost[0].Type)
		}
		if queued := len(g.record(id, events.TypeContinuationQueued)); queued != 2 {
			t.Errorf("write %d: %d messages are on record, want 2", n, queued)
		}
		g.audit(id)
		if m.died() == before { // it had fewer writes: all were tried
			if n < 10 {
				t.Errorf("only %d writes", n)
			}
			t.Logf("killed after each of %d writes", n-1)
			return
		}
	}
	t.Errorf("more than %d writes", enough)
}
