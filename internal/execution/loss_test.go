package execution_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/execution"
)

func TestALostTailIsSentAgain(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	lost := map[uint64]int{}
	b.lose = func(n uint64) bool { // the first time each
		lost[n]++
		return n >= 2 && lost[n] == 1
	}
	serve(t, b, execution.Config{})
	o := b.start(sh("head -c 300000 /dev/zero | tr '\\0' x; sleep 0.05; echo end"))
	got := b.exited(o)
	if want := strings.Repeat("x", 300000) + "end\n"; string(b.kept("stdout")) != want {
		t.Errorf("kept %d bytes of %d", len(b.kept("stdout")), len(want))
	}
	if got.Streams[0].MissingBytes != 0 || got.Streams[0].Bytes != 300004 {
		t.Errorf("streams are %+v", got.Streams)
	}
}

func TestWhatTheBusCannotKeepIsReported(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	b.lose = func(n uint64) bool { return n > 1 }
	serve(t, b, execution.Config{})
	got := b.exited(b.start(sh("printf first; sleep 0.2; printf second")))
	if s := got.Streams[0]; s.Bytes != 11 || s.MissingBytes != 6 || s.SHA256 != sum("firstsecond") {
		t.Errorf("stdout is %+v", s)
	}
}

func TestHolesLeftByALostConnectionAreFilled(t *testing.T) {
	t.Parallel()
	s := startServer(t, -1)
	b := connectBus(t, s.ClientURL())
	serve(t, b, execution.Config{})
	dir := t.TempDir()
	go1, go2 := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	wait := func(f string) string { return "while [ ! -e " + f + " ]; do sleep 0.01; done; " }
	o := b.start(sh("printf one; " + wait(go1) + "printf two; " + wait(go2) + "printf three"))
	b.until("the first chunk", func() bool { return len(b.chunks) == 1 })
	// The server dies, and with it the stream's tail: chunk 1 is lost behind our back.
	addr := s.ClientURL()
	stopServer(s)
	touch(t, go1)
	b.update(func() { b.chunks = nil })
	s = startServer(t, portOf(t, addr))
	t.Cleanup(func() { stopServer(s) })
	b.until("the repair", func() bool { return len(b.chunks) >= 2 })
	touch(t, go2)
	got := b.exited(o)
	if string(b.kept("stdout")) != "onetwothree" || got.Streams[0].MissingBytes != 0 {
		t.Errorf("kept %q, streams %+v", b.kept("stdout"), got.Streams)
	}
}

func TestWhileTheBusIsAwayOutputIsKeptUpToTheBound(t *testing.T) {
	t.Parallel()
	s := startServer(t, -1)
	b := connectBus(t, s.ClientURL())
	serve(t, b, execution.Config{SpoolBytes: 1 << 20})
	dir := t.TempDir()
	began, written := filepath.Join(dir, "began"), filepath.Join(dir, "written")
	o := b.start(sh("while [ ! -e " + began + " ]; do sleep 0.01; done; head -c 3000000 /dev/zero; printf END; touch " + written))
	b.started(o)
	addr := s.ClientURL()
	stopServer(s)
	awaitDisconnect(t, b)
	touch(t, began)
	awaitFile(t, written) // the command is not held up
	s = startServer(t, portOf(t, addr))
	t.Cleanup(func() { stopServer(s) })
	got := b.exited(o).Streams[0]
	if got.Bytes != 3000003 || got.MissingBytes != 3000003-(1<<20) {
		t.Errorf("stdout is %+v", got)
	}
	b.mu.Lock()
	// What was sent again may have come out of order.
	last := slices.MaxFunc(b.chunks, func(x, y stored) int { return cmp.Compare(x.number, y.number) })
	b.mu.Unlock()
	if !bytes.HasSuffix(last.data, []byte("END")) || last.offset+uint64(len(last.data)) != 3000003 {
		t.Errorf("the newest chunk is at %d and ends in %q", last.offset, last.data[max(0, len(last.data)-5):])
	}
}

func TestReportsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	o := b.start(sh("echo ready; sleep 0.3"))
	b.until("output", func() bool { return len(b.chunks) > 0 })
	b.update(func() { b.refuse[events.CmdExecReportExited] = events.Errorf(events.CodeStoreFull, "full") })
	b.update(func() { b.refuse[events.CmdExecOutput] = events.Errorf(events.CodeUnavailable, "away") })
	b.started(o)
	expire := time.AfterFunc(500*time.Millisecond, func() { b.update(func() { clear(b.refuse) }) })
	defer expire.Stop()
	if got := b.exited(o); got.ExitCode != 0 || got.Streams[0].MissingBytes != 0 {
		t.Errorf("exit is %+v", got)
	}
}

func TestAFactThatTheBusKnowsBetterIsLetGo(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	b.until("a registration", func() bool { return b.target != nil })
	b.update(func() { b.refuse[events.CmdExecReportExited] = events.Errorf(events.CodeAlreadyEnded, "lost") })
	b.start(sh("true")) // that the executor ends cleanly is the test
}

// Not parallel: it measures the memory of the whole test binary.
func TestAFloodTakesNoMemory(t *testing.T) {
	b := newBus(t)
	b.light = true // the test's own stream shall not count
	serve(t, b, execution.Config{})
	spec := sh("yes")
	spec.TimeoutMS = 1500
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := b.start(spec)
	b.started(o)
	got := b.exited(o)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if s := got.Streams[0]; s.Bytes < 1<<20 || s.MissingBytes < s.Bytes-64<<20 {
		t.Errorf("stdout is %+v", s)
	}
	t.Logf("%d MiB in %d ms", got.Streams[0].Bytes>>20, got.DurationMS)
}

func TestOnlyTheNewestChunksOfAFloodAreKept(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	const size = 80 << 20 // 1,280 chunks of 64 KiB
	o := b.start(events.ExecSpec{Argv: []string{"head", "-c", "83886080", "/dev/zero"}})
	got := b.exited(o).Streams[0]
	b.mu.Lock()
	defer b.mu.Unlock()
	var kept int64
	have := map[uint64]bool{}
	for _, c := range b.chunks {
		if !have[c.number] { // a chunk sent again may be there twice
			kept += int64(len(c.data))
		}
		have[c.number] = true
	}
	if got.Bytes != size || got.MissingBytes != size-kept || kept < 32<<20 {
		t.Errorf("stdout is %+v; the stream holds %d bytes", got, kept)
	}
}

// Not parallel: it measures time.
func TestTheFirstByteIsNotHeldBack(t *testing.T) {
	b := newBus(t)
	serve(t, b, execution.Config{})
	best := time.Hour
	for range 20 {
		sent := time.Now()
		o := b.start(sh("echo x; exec sleep 0.05"))
		n := 0
		b.until("output", func() bool { n = len(b.chunks); return n > 0 })
		b.mu.Lock()
		best = min(best, b.chunks[0].at.Sub(sent))
		b.mu.Unlock()
		b.exited(o)
		b.update(func() { b.chunks = nil })
	}
	t.Logf("order to first byte at the stream: %v", best)
	if best > 10*time.Millisecond {
		t.Errorf("the first byte took %v at best", best)
	}
}

func TestSmallWritesAreGathered(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{})
	b.exited(b.start(sh("i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done")))
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.chunks); n > 50 {
		t.Errorf("2,000 lines went in %d chunks", n)
	}
}

func TestTheSpoolLeavesNoFile(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	dir := filepath.Join(t.TempDir(), "spool")
	serve(t, b, execution.Config{SpoolDir: dir})
	o := b.start(sh("echo ready; sleep 300"))
	b.until("output", func() bool { return len(b.chunks) > 0 })
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 0 {
		t.Errorf("found %v, %v", files, err)
	}
	b.tell(events.ExecStop, events.StopOrder{Session: o.Session, Exec: o.Request.Exec})
	b.exited(o)
}
