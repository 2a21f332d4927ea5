package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/archive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const session = events.SessionID("01JSESS10N0000000000000000")

var execs = []events.ExecID{"01JEXEC0000000000000000000", "01JEXEC1000000000000000000"}

// record makes an event as it is read from a log.
func record(t testing.TB, seq events.Sequence, ord events.Ordinal, data []byte) events.Record {
	t.Helper()
	e := cloudevent.New()
	e.SetID("01JEVENT000000000000000000")
	e.SetType(string(events.TypeTurnReportedLate))
	e.SetSource(events.Source("default", "gw"))
	e.SetSubject(string(session))
	e.SetTime(time.Date(2026, 12, 1, 2, 3, 4, 5, time.UTC))
	e.SetDataContentType("application/json")
	e.SetExtension(events.ExtOrdinal, ord.String())
	e.SetExtension(events.ExtTurn, `T"1 < é`)
	e.DataEncoded = data
	r, err := events.RecordOf("default", session.Scope(), seq, e)
	if err != nil {
		t.Fatalf("record: %v", err)
	}
	return r
}

// write fills a file.
func write(t testing.TB, fill func(w *archive.Writer) error) []byte {
	t.Helper()
	var counted, out bytes.Buffer
	first := archive.NewWriter(&counted)
	if err := fill(first); err != nil {
		t.Fatalf("count: %v", err)
	}
	w := archive.NewWriter(&out)
	h := first.Counted(archive.Header{
		Profile: "default", Session: session, ExportedAt: time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC),
		Software: "test", Schemas: "s", Redaction: events.RedactNone,
	})
	if err := errors.Join(w.Header(h), fill(w), w.End()); err != nil {
		t.Fatalf("write: %v", err)
	}
	return out.Bytes()
}

// small is a file with a line of each kind.
func small(t testing.TB) []byte {
	t.Helper()
	return write(t, func(w *archive.Writer) error {
		return errors.Join(
			w.Event(record(t, 7, 1, []byte(`{"a": 1e400,"z":"<&>\u2028"}`))),
			w.Raw(archive.Raw{Place: archive.Place{Sequence: 9, Ordinal: 2}, Header: map[string][]string{"Content-Type": {"application/cloudevents+json"}}, Data: []byte("\xff")}),
			w.Event(record(t, 12, 3, []byte("{\n\"b\":2}"))),
			w.Event(record(t, 13, 4, nil)),
			w.Chunk(archive.Chunk{Exec: execs[0], Number: 1, Stream: "stdout", TimeUS: 5, Data: []byte("hello\n\x00\xff")}),
			w.Chunk(archive.Chunk{Exec: execs[0], Number: 3, Stream: "stderr", Data: []byte("x")}),
			w.Chunk(archive.Chunk{Exec: execs[1], Number: 2, Stream: "pty", Offset: 9, Data: []byte("y")}),
		)
	})
}

// read collects what a file says.
func read(file []byte) (archive.Header, []archive.Item, error) {
	var items []archive.Item
	h, err := archive.Read(bytes.NewReader(file), func(i archive.Item) error {
		if i.Chunk != nil || i.Message != nil {
			items = append(items, i)
		}
		return nil
	})
	return h, items, err
}

func TestWhatIsWrittenIsReadByteForByte(t *testing.T) {
	t.Parallel()
	file := small(t)
	h, items, err := read(file)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if h.Events != 4 || h.Chunks != 3 || h.First.Sequence != 7 || h.Last.Ordinal != 4 || len(items) != 7 {
		t.Errorf("header %+v, %d items", h, len(items))
	}
	for i, want := range []string{`{"a": 1e400,"z":"<&>\u2028"}`, "\xff", "{\n\"b\":2}", ""} {
		if got := string(items[i].Message.Data); got != want {
			t.Errorf("data of message %d is %q, want %q", i+1, got, want)
		}
	}
	e, err := events.Decode(items[0].Message.Header, items[0].Message.Data)
	if err != nil || e.Extensions()[events.ExtTurn] != `T"1 < é` || e.Extensions()[events.ExtSequence] != nil {
		t.Errorf("event %v, %v", e, err)
	}
	if !items[1].Message.Broken || string(items[4].Chunk.Data) != "hello\n\x00\xff" {
		t.Errorf("items %+v", items)
	}
	if diff := cmp.Diff(string(file), string(small(t))); diff != "" {
		t.Errorf("the same record is another file:\n%s", diff)
	}
}

// TestEachDamagedByteIsFoundAtItsLine flips each byte of a file, and cuts it everywhere.
func TestEachDamagedByteIsFoundAtItsLine(t *testing.T) {
	t.Parallel()
	file := small(t)
	for i := range file {
		line := 1 + bytes.Count(file[:i], []byte("\n"))
		for _, flip := range []byte{0x01, 0x20, 0x80} {
			damaged := bytes.Clone(file)
			damaged[i] ^= flip
			_, _, err := read(damaged)
			var at *archive.LineError
			if !errors.As(err, &at) || at.Line != line {
				t.Fatalf("byte %d of line %d flipped by %#x: %v", i, line, flip, err)
			}
		}
		_, _, err := read(file[:i])
		if !errors.Is(err, archive.ErrTruncated) {
			t.Fatalf("cut at byte %d: %v", i, err)
		}
	}
}

func TestEditedFilesAreRefusedWithTheLine(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(string(small(t)), "\n")
	lines = lines[:len(lines)-1]
	join := func(parts ...[]string) string {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(strings.Join(p, ""))
		}
		return b.String()
	}
	swapped := append([]string{}, lines...)
	swapped[1], swapped[3] = swapped[3], swapped[1]
	for _, c := range []struct {
		name, file string
		line       int
		is         error
	}{
		{"nothing at all", "", 1, archive.ErrTruncated},
		{"a line gone", join(lines[:2], lines[3:]), 3, archive.ErrChain},
		{"the first gone", join(lines[1:]), 1, archive.ErrChain},
		{"a line twice", join(lines[:3], lines[2:]), 4, archive.ErrChain},
		{"two swapped", join(swapped), 2, archive.ErrChain},
		{"one more behind the end", join(lines, lines[8:]), 10, archive.ErrChain},
		{"something behind the end", join(lines) + "x", 10, archive.ErrForm},
		{"an empty line", join(lines[:2], []string{"\n"}, lines[2:]), 3, archive.ErrForm},
		{"white space", join(lines[:2], []string{strings.Replace(lines[2], `":{`, `": {`, 1)}, lines[3:]), 3, archive.ErrChain},
		{"the end of another", join(lines[:7], lines[8:]), 8, archive.ErrChain},
		{"carriage returns", strings.ReplaceAll(join(lines), "\n", "\r\n"), 1, archive.ErrForm},
		{"text of another kind", "hello\nworld\n", 1, archive.ErrForm},
		{"a line without end", strings.Repeat("x", archive.MaxLine+2), 1, archive.ErrForm},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read([]byte(c.file))
			var at *archive.LineError
			if !errors.As(err, &at) || at.Line != c.line || !errors.Is(err, c.is) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// rechained gives lines the chain that they need, as somebody does who knows how.
func rechained(t testing.TB, bodies ...string) []byte {
	t.Helper()
	var out []byte
	out, err := archive.Rechain(bodies)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWhatNoWriterWritesIsRefusedThoughItsChainFits forges lines.
func TestWhatNoWriterWritesIsRefusedThoughItsChainFits(t *testing.T) {
	t.Parallel()
	var bodies []string
	for line := range strings.Lines(string(small(t))) {
		kind, body, _ := strings.Cut(strings.TrimSuffix(line, "}\n")[len(`{"chain":"`)+64+len(`","`):], `":`)
		bodies = append(bodies, kind, body)
	}
	change := func(line int, from, to string) []string {
		out := append([]string{}, bodies...)
		if !strings.Contains(out[2*line-1], from) {
			t.Fatalf("line %d has no %s: %s", line, from, out[2*line-1])
		}
		out[2*line-1] = strings.Replace(out[2*line-1], from, to, 1)
		return out
	}
	if _, _, err := read(rechained(t, bodies...)); err != nil {
		t.Fatalf("the chain of the test is not that of the writer: %v", err)
	}
	for _, c := range []struct {
		name  string
		lines []string
		line  int
		is    error
	}{
		{"a newer version", change(1, `"version":1`, `"version":2`), 1, archive.ErrVersion},
		{"another format", change(1, `keryx-session`, `zip`), 1, archive.ErrForm},
		{"no session", change(1, string(session), "x"), 1, archive.ErrForm},
		{"an unknown member", change(1, `"version":1`, `"version":1,"x":1`), 1, archive.ErrForm},
		{"nothing in it", change(1, `"events":4`, `"events":0`), 1, archive.ErrForm},
		{"counts that are wrong", change(1, `"events":4`, `"events":5`), 9, archive.ErrChain},
		{"another first event", change(1, `"first":{"sequence":7`, `"first":{"sequence":6`), 2, archive.ErrOrder},
		{"an event of another session", change(2, `"subject":"`+string(session), `"subject":"01JSESS10N0000000000000001`), 2, archive.ErrForm},
		{"an event without sequence", change(2, `"sequence":"7"`, `"sequence":"x"`), 2, archive.ErrForm},
		{"members in another order", change(2, `"specversion":"1.0",`, ``), 2, archive.ErrForm},
		{"a message that goes back", change(4, `"sequence":"12"`, `"sequence":"8"`), 4, archive.ErrOrder},
		{"a header that the server acts upon", change(3, `Content-Type`, `Nats-Rollup`), 3, archive.ErrForm},
		{"a header of the bus's own", change(3, `Content-Type`, `keryx-import`), 3, archive.ErrForm},
		{"a header with a line break", change(3, `application/`, `a\r\nb`), 3, archive.ErrForm},
		{"a chunk without a number", change(6, `"number":1`, `"number":0`), 6, archive.ErrForm},
		{"a chunk that goes back", change(7, `"number":3`, `"number":1`), 7, archive.ErrOrder},
		{"a stream that is none", change(8, `"pty"`, `"p y"`), 8, archive.ErrForm},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(rechained(t, c.lines...))
			var at *archive.LineError
			if !errors.As(err, &at) || at.Line != c.line || !errors.Is(err, c.is) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAHeaderThatSaysSomethingElseIsNotClosed(t *testing.T) {
	t.Parallel()
	w := archive.NewWriter(&bytes.Buffer{})
	h := archive.Header{Profile: "default", Session: session, Events: 2}
	if err := errors.Join(w.Header(h), w.Event(record(t, 1, 1, nil))); err != nil {
		t.Fatalf("write: %v", err)
	}
	if err := w.End(); err == nil || !strings.Contains(err.Error(), "changed while it was exported") {
		t.Errorf("got %v", err)
	}
}

// TestAFileMayComeInAnyPieces feeds a file in pieces of any size.
func TestAFileMayComeInAnyPieces(t *testing.T) {
	t.Parallel()
	file := small(t)
	_, want, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var f archive.Feeder
		var got []archive.Item
		for rest := file; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 300)).Draw(t, "piece")
			if err := f.Feed(bytes.Clone(rest[:n]), func(i archive.Item) error {
				if i.Chunk != nil || i.Message != nil {
					got = append(got, i)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := f.Done(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-whole +pieces):\n%s", diff)
		}
	})
}

// FuzzRead looks for a file that is taken and not written again as it was.
func FuzzRead(f *testing.F) {
	file := small(f)
	f.Add(file)
	f.Add(bytes.ReplaceAll(file, []byte("event"), []byte("raw")))
	f.Add([]byte(`{"chain":"` + strings.Repeat("0", 64) + `","header":{}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, items, err := read(b)
		var at *archive.LineError
		if err != nil {
			if !errors.As(err, &at) {
				t.Fatalf("an error without a line: %v", err)
			}
			return
		}
		var out bytes.Buffer
		w := archive.NewWriter(&out)
		err = w.Header(h)
		for _, i := range items {
			err = errors.Join(err, again(w, i))
		}
		if err = errors.Join(err, w.End()); err != nil || !bytes.Equal(out.Bytes(), b) {
			t.Fatalf("taken, and written otherwise: %v\n%q\n%q", err, b, out.Bytes())
		}
	})
}

func again(w *archive.Writer, i archive.Item) error {
	switch {
	case i.Chunk != nil:
		return w.Chunk(*i.Chunk)
	case i.Message.Broken:
		return w.Raw(archive.Raw{Place: i.Message.Place, Header: i.Message.Header, Data: i.Message.Data})
	}
	e, err := events.Decode(i.Message.Header, i.Message.Data)
	if err != nil {
		return err
	}
	r, err := events.RecordOf("default", session.Scope(), i.Message.Sequence, e)
	return errors.Join(err, w.Event(r))
}

// ExampleRead prints what a file says of itself.
func ExampleRead() {
	_, err := archive.Read(strings.NewReader("not an export\n"), func(archive.Item) error { return nil })
	fmt.Println(err)
	// Output: line 1: not a line of an export
}
