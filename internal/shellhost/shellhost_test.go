package shellhost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"keryx/client"
	"keryx/events"
	"keryx/internal/shellhost"
)

// piece is output of a command.
type piece struct {
	stream string
	data   string
}

// turn is a turn whose commands do as they are told.
type turn struct {
	pieces []piece
	skip   int64 // bytes of stdout that were not kept before the last piece
	end    events.ExecExited
	err    error
	ran    [][]string
	parts  []string
	broken error // of Part
}

func (t *turn) Exec(_ context.Context, spec events.ExecSpec, fn func(client.Chunk)) (events.ExecExited, error) {
	t.ran = append(t.ran, spec.Argv)
	at := map[string]int64{}
	for i, p := range t.pieces {
		if i == len(t.pieces)-1 {
			at[p.stream] += t.skip
		}
		fn(client.Chunk{Number: uint64(i + 1), Stream: p.stream, Offset: at[p.stream], Data: []byte(p.data)})
		at[p.stream] += int64(len(p.data))
	}
	return t.end, t.err
}

func (t *turn) Part(text string) error {
	t.parts = append(t.parts, text)
	return t.broken
}

func run(ctx context.Context, t *turn, texts ...string) client.Result {
	var items []events.Item
	for _, text := range texts {
		items = append(items, events.Item{Body: events.Body{Text: text}})
	}
	return shellhost.Run(ctx, t, items, slog.New(slog.DiscardHandler))
}

func TestTheOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  events.ExecExited
		err  error
		want client.Result
	}{
		"status 0 completes":   {want: client.Result{Outcome: events.OutcomeCompleted}},
		"another status fails": {end: events.ExecExited{ExitCode: 7}, want: client.Result{Outcome: events.OutcomeFailed, Error: "exit status 7"}},
		"a signal aborts": {
			end:  events.ExecExited{ExitCode: -1, Signal: "SIGKILL"},
			want: client.Result{Outcome: events.OutcomeAborted, Error: "killed by SIGKILL"},
		},
		"a timeout aborts": {
			end:  events.ExecExited{ExitCode: -1, Signal: "SIGTERM", TimedOut: true},
			want: client.Result{Outcome: events.OutcomeAborted, Error: "timed out"},
		},
		"a stop aborts, whatever the status": {
			end:  events.ExecExited{Stopped: true},
			want: client.Result{Outcome: events.OutcomeAborted, Error: "stopped"},
		},
		"a refusal fails with its words": {
			err:  events.Errorf(events.CodeLaunchFailed, "look up command"),
			want: client.Result{Outcome: events.OutcomeFailed, Error: "launch_failed: look up command"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t.Context(), &turn{end: c.end, err: c.err}, "true")
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("result (-want +got):\n%s", d)
			}
		})
	}
}

func TestAnInterruptAborts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(client.ErrInterrupted)
	got := run(ctx, &turn{err: errors.New("gone")}, "sleep 300")
	if got.Outcome != events.OutcomeAborted || got.Error != client.ErrInterrupted.Error() {
		t.Errorf("result is %+v", got)
	}
}

func TestTheReplyIsTheOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []piece
		want   string
	}{
		"nothing":                           {nil, ""},
		"one newline goes":                  {[]piece{{"stdout", "hello\n"}}, "hello"},
		"only one newline goes":             {[]piece{{"stdout", "a\n\n"}}, "a\n"},
		"both streams, as they were read":   {[]piece{{"stdout", "1\n"}, {"stderr", "2\n"}, {"stdout", "3\n"}}, "1\n2\n3"},
		"a character split over two chunks": {[]piece{{"stdout", "h\xc3"}, {"stdout", "\xa9!"}}, "hé!"},
		"one split around the other stream": {[]piece{{"stdout", "\xe6\x97"}, {"stderr", "x"}, {"stdout", "\xa5"}}, "x日"},
		"bytes that are no characters":      {[]piece{{"stdout", "a\xff\xfeb"}}, "a\uFFFD\uFFFDb"},
		"half a character at the end":       {[]piece{{"stdout", "a\xe6\x97"}}, "a\uFFFD\uFFFD"},
		"a NUL":                             {[]piece{{"stdout", "\x00"}}, "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &turn{pieces: c.pieces}
			got := run(t.Context(), tr, "x")
			if got.Reply != c.want || got.ReplyTruncated {
				t.Errorf("reply is %q, truncated %v; want %q", got.Reply, got.ReplyTruncated, c.want)
			}
			if all := strings.Join(tr.parts, ""); strings.TrimSuffix(all, "\n") != c.want {
				t.Errorf("the pieces make %q", all)
			}
		})
	}
}

func TestAnyBytesMakeValidPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.SliceOf(rapid.SampledFrom([]byte("a\n\x00\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80\xff\xed\xa0\x80"))).Draw(t, "bytes")
		tr := &turn{}
		for rest := whole; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			tr.pieces = append(tr.pieces, piece{"stdout", string(rest[:n])})
			rest = rest[n:]
		}
		got := run(context.Background(), tr, "x")
		if want := strings.TrimSuffix(string([]rune(string(whole))), "\n"); got.Reply != want {
			t.Fatalf("reply is %q, want %q", got.Reply, want)
		}
		for _, p := range tr.parts {
			if !utf8.ValidString(p) || p == "" {
				t.Fatalf("piece %q", p)
			}
		}
	})
}

func TestALongReplyKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"plain lines":           "line %d\n",
		"characters of 3 bytes": "日本語 %d\n",
		"bytes JSON escapes":    "\x00\x01\x02<>& %d\n",
		"bytes of no character": "\xff\xff\xff %d\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &turn{}
			for i := range 200_000 {
				tr.pieces = append(tr.pieces, piece{"stdout", fmt.Sprintf(line, i)})
			}
			got := run(t.Context(), tr, "x")
			body, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Reply) > events.MaxBody || len(body) > events.MaxData-(32<<10) || !utf8.ValidString(got.Reply) {
				t.Errorf("reply has %d bytes, %d in JSON", len(got.Reply), len(body))
			}
			if !got.ReplyTruncated || !strings.Contains(got.Reply, " bytes cut ...]\n") {
				t.Error("the cut is not marked")
			}
			if !strings.Contains(got.Reply[:20], " 0\n") || !strings.HasSuffix(got.Reply, " 199999") {
				t.Errorf("reply is %q ... %q", got.Reply[:20], got.Reply[len(got.Reply)-20:])
			}
		})
	}
}

func TestTheCutCountsWhatIsMissing(t *testing.T) {
	t.Parallel()
	tr := &turn{}
	for range 1000 {
		tr.pieces = append(tr.pieces, piece{"stdout", strings.Repeat("x", 1000)})
	}
	got := run(t.Context(), tr, "x").Reply
	head, rest, _ := strings.Cut(got, "\n[... ")
	var cut int
	if _, err := fmt.Sscanf(rest, "%d", &cut); err != nil {
		t.Fatal(err)
	}
	_, tail, _ := strings.Cut(rest, "...]\n")
	if len(head)+cut+len(tail) != 1_000_000 || len(got) < events.MaxBody-256 {
		t.Errorf("%d + %d + %d bytes", len(head), cut, len(tail))
	}
}

func TestOutputThatWasNotKeptIsMarked(t *testing.T) {
	t.Parallel()
	tr := &turn{pieces: []piece{{"stdout", "a"}, {"stdout", "b"}}, skip: 10}
	tr.end.Streams = []events.StreamSummary{{Name: "stdout", Bytes: 15}}
	got := run(t.Context(), tr, "x")
	want := "a\n[... 10 bytes of stdout were not kept ...]\nb\n[... 3 bytes of stdout were not kept ...]"
	if got.Reply != want || !got.ReplyTruncated || got.Outcome != events.OutcomeCompleted {
		t.Errorf("result is %+v", got)
	}
}

func TestMessagesRunInOrderUntilOneFails(t *testing.T) {
	t.Parallel()
	tr := &turn{pieces: []piece{{"stdout", "x\n"}}}
	if got := run(t.Context(), tr, "-c", "two"); got.Reply != "x\nx" || got.Outcome != events.OutcomeCompleted {
		t.Errorf("result is %+v", got)
	}
	want := [][]string{{"/bin/sh", "-c", "--", "-c"}, {"/bin/sh", "-c", "--", "two"}}
	if d := cmp.Diff(want, tr.ran); d != "" {
		t.Errorf("commands (-want +got):\n%s", d)
	}
	tr = &turn{end: events.ExecExited{ExitCode: 1}}
	if got := run(t.Context(), tr, "one", "two"); len(tr.ran) != 1 || got.Outcome != events.OutcomeFailed {
		t.Errorf("ran %v, result %+v", tr.ran, got)
	}
}

func TestPiecesThatCannotBePublishedDoNotHurtTheReply(t *testing.T) {
	t.Parallel()
	tr := &turn{pieces: []piece{{"stdout", "a"}, {"stdout", "b"}}, broken: errors.New("away")}
	if got := run(t.Context(), tr, "x"); got.Reply != "ab" || got.Outcome != events.OutcomeCompleted {
		t.Errorf("result is %+v", got)
	}
}

func TestTheEndOfAJobIsToldAndNotRun(t *testing.T) {
	t.Parallel()
	tn := &turn{pieces: []piece{{stream: "stdout", data: "ran\n"}}}
	items := []events.Item{{Kind: events.ItemJobExit, Body: events.Body{Text: "job X exited 0: touch /tmp/x"}}}
	got := shellhost.Run(t.Context(), tn, items, slog.New(slog.DiscardHandler))
	if got.Outcome != events.OutcomeCompleted || got.Reply != "job X exited 0: touch /tmp/x" {
		t.Errorf("result is %+v", got)
	}
}
