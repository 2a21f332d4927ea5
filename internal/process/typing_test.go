package process_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"keryx/internal/process"
)

// pasteRuns is how many random pastes are typed; the environment can ask for more.
func pasteRuns(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("KERYX_TEST_RUNS"))
	if err != nil || n < 1 {
		return 3
	}
	return n
}

// reader is a program that reads slowly, or not before it has written much, and says what
// it got: how many bytes, and their digest.
const reader = `stty %s -echo; echo ready; %s cat > '%s'; echo; wc -c < '%[3]s'; sha256sum < '%[3]s' | cut -c1-64; echo done`

// typeAll types pieces, however long it takes, and returns how much was taken.
func typeAll(t *testing.T, p *process.Process, pieces [][]byte) (taken int, cut bool) {
	t.Helper()
	type answer struct {
		n   int
		err error
	}
	for _, piece := range pieces {
		done := make(chan answer, 1)
		if _, err := p.TypeThen(piece, func(n int, err error) { done <- answer{n, err} }); err != nil {
			t.Fatal(err)
		}
		select {
		case a := <-done:
			taken += a.n
			switch {
			case errors.Is(a.err, process.ErrLineTooLong):
				cut = true
			case a.err != nil:
				t.Fatal(a.err)
			case a.n != len(piece):
				t.Fatalf("%d of %d bytes taken, and no reason", a.n, len(piece))
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a piece was neither taken nor refused")
		}
	}
	return taken, cut
}

// TestWhatIsTakenOfAPasteIsWhatIsRead types random pastes into a slow program, raw and by
// lines, and compares what is said to be taken with what the program got.
func TestWhatIsTakenOfAPasteIsWhatIsRead(t *testing.T) {
	t.Parallel()
	for range pasteRuns(t) {
		for _, c := range pastes() {
			t.Run(c.name, func(t *testing.T) { c.check(t) })
		}
	}
}

type paste struct {
	name, mode, delay string
	lines             []int // their lengths
	end               string
}

func pastes() []paste {
	draw := rapid.SliceOfN(rapid.IntRange(0, 6000), 1, 12).Example(int(time.Now().UnixNano() & 0xffffff))
	return []paste{
		{"lines that fit", "", "", []int{10, 4095, 0, 1}, "\r"},
		{"a line too long", "", "", []int{5000, 3}, "\r"},
		{"lines that wait for a slow reader", "", "sleep 0.3;", []int{4000, 4000, 4000, 200, 4095}, "\r"},
		{"a slow reader and lines too long", "", "sleep 0.3;", []int{4094, 4096, 4095, 9000, 12}, "\r"},
		{"random lines " + fmt.Sprint(draw), "", "sleep 0.1;", draw, "\r"},
		{"raw, and no lines", "raw", "", []int{100_000}, ""},
		{"raw, with a slow reader", "raw", "sleep 0.3;", []int{200_000, 3}, "\r"},
	}
}

func (c paste) check(t *testing.T) {
	t.Helper()
	file := t.TempDir() + "/got"
	src := fmt.Sprintf(reader, c.mode, c.delay, file)
	var pieces [][]byte
	var want []byte
	cut := false
	for i, n := range c.lines {
		line := bytes.Repeat([]byte{byte('a' + i%26)}, n)
		for rest := append(line, c.end...); len(rest) > 0; rest = rest[min(len(rest), 1000):] {
			pieces = append(pieces, rest[:min(len(rest), 1000)])
		}
		if c.mode == "" && n > process.MaxLine {
			line, cut = line[:process.MaxLine], true
		}
		want = append(want, line...)
		if c.end != "" && c.mode == "" {
			want = append(want, '\n')
		} else {
			want = append(want, c.end...)
		}
	}
	if c.mode == "raw" {
		src = strings.Replace(src, "cat >", fmt.Sprintf("head -c %d >", len(want)), 1)
	}
	p, s := onTerminal(t, process.Spec{Argv: sh(src)})
	s.waitFor(t, "the reader", holds("ready"))
	taken, told := typeAll(t, p, pieces)
	if c.mode == "" {
		if _, err := p.Type([]byte{4}); err != nil { // the end of the input
			t.Fatal(err)
		}
	}
	s.waitFor(t, "the count", holds("done"))
	sum := sha256.Sum256(want)
	got := strings.Fields(s.text())
	if n := len(got); n < 4 || got[n-3] != strconv.Itoa(len(want)) || got[n-2] != hex.EncodeToString(sum[:]) {
		t.Errorf("the program got %v, want %d bytes", got, len(want))
	}
	if taken != len(want) || told != cut {
		t.Errorf("said to be taken: %d bytes, cut: %t; want %d, %t", taken, told, len(want), cut)
	}
	wait(t, p, 10*time.Second)
}

func TestKeysThatTakeALineBackMakeRoom(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: sh(`stty -echo; echo ready; read x; echo "<${#x}>"`)})
	s.waitFor(t, "the reader", holds("ready"))
	full := bytes.Repeat([]byte("x"), process.MaxLine)
	erased := append(append(bytes.Clone(full), 0x7f, 0x7f), "yz"...) // DEL erases
	killed := append(append(bytes.Clone(full), 0x15), erased...)     // ^U kills the line
	if n, cut := typeAll(t, p, [][]byte{killed, []byte("\r")}); cut || n != len(killed)+1 {
		t.Errorf("%d of %d bytes taken, cut: %t", n, len(killed)+1, cut)
	}
	s.waitFor(t, "the length", holds(fmt.Sprintf("<%d>", process.MaxLine)))
}

// TestTypingWhileTheProgramOnlyWrites: a program that floods and does not read must not
// keep what is typed from being answered once it ends, nor its output from being read.
func TestTypingWhileTheProgramOnlyWrites(t *testing.T) {
	t.Parallel()
	p, s := onTerminal(t, process.Spec{Argv: sh(`stty raw -echo; echo ready; head -c 3000000 /dev/zero | tr '\0' z; echo over; sleep 300`)})
	s.waitFor(t, "the reader", holds("ready"))
	answered := make(chan error, 1)
	if _, err := p.TypeThen(bytes.Repeat([]byte("k"), 1<<20), func(_ int, err error) { answered <- err }); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, "all output", holds("over"))
	if err := p.Stop(nil); err != nil {
		t.Fatal(err)
	}
	wait(t, p, 10*time.Second)
	select {
	case err := <-answered:
		if !errors.Is(err, process.ErrNoTerminal) {
			t.Errorf("answered %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("what was not taken was never said")
	}
}
