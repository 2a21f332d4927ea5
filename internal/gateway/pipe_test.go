package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/node"
)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// piped holds a conversation over input and returns what went out.
func piped(t *testing.T, n *node.Node, input string) (out, notices string, err error) {
	t.Helper()
	var o, e buffer
	p := &gateway.Pipe{In: io.NopCloser(strings.NewReader(input)), Out: &o, Err: &e}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = gateway.Hold(ctx, gateway.Config{
		Conn: connect(t, n, "cli", events.RoleGateway), Key: "k", Logger: slog.New(slog.DiscardHandler),
	}, p)
	return o.String(), e.String(), err
}

func TestAPipeGetsRepliesAloneAndInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, input, out string
		notices          []string
		done             bool
	}{
		{"a line is a message", "one\ntwo\n", "you said one\nyou said two\n", nil, true},
		{"the last line needs no end", "one", "you said one\n", nil, true},
		{"blank lines are nothing", "\n  \none\n\n", "you said one\n", nil, true},
		{"lines may end as on Windows", "one\r\ntwo\r\n", "you said one\nyou said two\n", nil, true},
		{"no input is done", "", "", nil, true},
		{"a failed turn's reply is a reply", "fail\n", "fail\n", []string{"turn failed: as asked"}, false},
		{"two slashes send one", "//new\n", "you said /new\n", nil, true},
		{"an unknown command is not sent", "/nope\none\n", "you said one\n", []string{"no command /nope"}, false},
		{"help goes beside", "/help\none\n", "you said one\n", []string{"/status", "/stop"}, true},
		{"new waits for what came before", "one\n/new\ntwo\n/status\n", "you said one\nyou said two\n", []string{"epoch 2 begins: /new", "epoch    2", "waiting  0"}, true},
		{
			"a line that is too long does not stop the others", strings.Repeat("x", events.MaxBody+1) + "\none\n", "you said one\n",
			[]string{"line 1 is not sent: it is longer than 262144 bytes"},
			false,
		},
		{"nor one that is not UTF-8", "one\n\xff\ntwo", "you said one\nyou said two\n", []string{"line 2 is not sent: it is not UTF-8"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := bus(t, node.Config{})
			host(t, connect(t, n, "agent", events.RoleHost), echo)
			out, notices, err := piped(t, n, c.input)
			if out != c.out {
				t.Errorf("out %q, want %q", out, c.out)
			}
			for _, want := range c.notices {
				if !strings.Contains(notices, want) {
					t.Errorf("notices lack %q: %s", want, notices)
				}
			}
			if c.done && err != nil || !c.done && !errors.Is(err, gateway.ErrNotDone) {
				t.Errorf("ended with %v, done is %v; notices: %s", err, c.done, notices)
			}
		})
	}
}

func TestALineOfTheLargestSizeIsSent(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), func(_ context.Context, turn *client.Turn) client.Result {
		return client.Result{Outcome: events.OutcomeCompleted, Reply: fmt.Sprint(len(turn.Items[0].Body.Text))}
	})
	out, notices, err := piped(t, n, strings.Repeat("x", events.MaxBody)+"\r\n")
	if out != "262144\n" || err != nil {
		t.Errorf("out %q, %v: %s", out, err, notices)
	}
}

func TestManyLinesKeepTheirOrderWithFewInFlight(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	most := 0
	host(t, connect(t, n, "agent", events.RoleHost), func(ctx context.Context, turn *client.Turn) client.Result {
		r := echo(ctx, turn)
		if strings.HasSuffix(turn.Items[0].Body.Text, "0") { // look now and then
			v, err := n.Connect(ctx, events.Principal{Profile: "default", Name: "watch", Role: events.RoleObserver})
			if err != nil {
				return client.Result{Outcome: events.OutcomeFailed, Error: err.Error()}
			}
			s, err := v.Show(ctx, "k")
			if err := errors.Join(err, v.Close()); err != nil {
				return client.Result{Outcome: events.OutcomeFailed, Error: err.Error()}
			}
			most = max(most, s.Pending)
		}
		return r
	})
	var in, want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&in, "%d\n", i)
		fmt.Fprintf(&want, "you said %d\n", i)
	}
	out, notices, err := piped(t, n, in.String())
	if out != want.String() || err != nil {
		t.Errorf("ended with %v, out of order or not whole: %.200q %s", err, out, notices)
	}
	if most >= gateway.MaxInFlight || most == 0 {
		t.Errorf("%d messages waited at once, at most %d may", most, gateway.MaxInFlight-1)
	}
}

func TestStopActsAtOnceOnWhatRuns(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), func(ctx context.Context, turn *client.Turn) client.Result {
		if turn.Items[0].Body.Text == "run" {
			return untilStopped(ctx, turn)
		}
		return echo(ctx, turn)
	})
	out, notices, err := piped(t, n, "run\n/stop\nafter\n")
	if out != "you said after\n" || !errors.Is(err, gateway.ErrNotDone) || !strings.Contains(notices, "turn aborted") {
		t.Errorf("out %q, %v: %s", out, err, notices)
	}
}

func TestAnInterruptStopsTheTurnAndASecondOneIsLeftToTheCaller(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	begun, release := make(chan struct{}), make(chan struct{})
	host(t, connect(t, n, "agent", events.RoleHost), func(ctx context.Context, turn *client.Turn) client.Result {
		close(begun)
		<-release // longer than the interrupt
		return untilStopped(ctx, turn)
	})
	var out, notices buffer
	p := &gateway.Pipe{In: io.NopCloser(strings.NewReader("run\n")), Out: &out, Err: &notices}
	if p.Interrupt() {
		t.Error("an interrupt is spent on a chat that does not exist")
	}
	held := make(chan error, 1)
	go func() {
		held <- gateway.Hold(t.Context(), gateway.Config{
			Conn: connect(t, n, "cli", events.RoleGateway), Key: "k", Logger: slog.New(slog.DiscardHandler),
		}, p)
	}()
	<-begun
	first := false
	for deadline := time.Now().Add(patience); !first && time.Now().Before(deadline); {
		first = p.Interrupt() // the chat hears of the turn a moment after the host
	}
	if second := p.Interrupt(); !first || second {
		t.Errorf("first interrupt spent %v, second %v", first, second)
	}
	close(release)
	if err := <-held; !errors.Is(err, gateway.ErrNotDone) {
		t.Errorf("ended with %v: %s", err, notices.String())
	}
}

// refusing fails each write.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestOutputThatCannotBeWrittenEndsTheConversation(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	host(t, connect(t, n, "agent", events.RoleHost), echo)
	p := &gateway.Pipe{In: io.NopCloser(strings.NewReader("one\n/new\ntwo\n")), Out: refusing{}, Err: io.Discard}
	err := gateway.Hold(t.Context(), gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"}, p)
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestTheEndOfTheContextEndsABlockedRead(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatalf("pipe: %v", err)
	}
	defer func() { _ = errors.Join(r.Close(), w.Close()) }()
	in, err := gateway.NewInput(r)
	if err != nil {
		t.Fatalf("input: %v", err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
	err = gateway.Hold(ctx, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k"},
		&gateway.Pipe{In: in, Out: io.Discard, Err: io.Discard})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
