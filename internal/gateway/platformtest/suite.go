// Package platformtest checks that a platform keeps the rules of package platform. Every
// platform's tests run it against the real thing: a process, a server, a protocol.
package platformtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/gateway/platform"
)

// Patience bounds every wait of the suite.
const Patience = 20 * time.Second

// Answer is what the other side says to a send.
type Answer struct {
	Message string // the id it gives; empty: it gives none
	Later   time.Duration
	Final   bool
	Fail    bool
}

// Side is the other side of a platform: the people, and the platform's own servers.
type Side interface {
	// Say delivers a message and returns when the platform was told what became of it:
	// taken, or to come again.
	Say(t *testing.T, m platform.Incoming) (taken, again bool)
	// Next waits for the next send, answers it, and returns what came.
	Next(t *testing.T, a Answer) platform.Outgoing
}

// Features are what a platform has beyond the rules.
type Features struct {
	// Ids: it gives what is sent an id.
	Ids bool
}

// Receive is what an inbox does with a message.
type Receive func(context.Context, platform.Incoming) (platform.Taken, error)

// Box is an inbox whose answers a test chooses. Make it with [NewBox].
type Box struct {
	mu       sync.Mutex
	got      []platform.Incoming
	answer   Receive
	received chan struct{}
}

var _ platform.Inbox = (*Box)(nil)

// TakeAll is what a new box does.
func TakeAll(context.Context, platform.Incoming) (platform.Taken, error) {
	return platform.Taken{Session: "01JSESS10N0000000000000000", Receipt: "01JRECE1PT0000000000000000"}, nil
}

// NewBox returns an inbox that takes everything.
func NewBox() *Box { return &Box{received: make(chan struct{}, 1024), answer: TakeAll} }

// Receive implements platform.Inbox.
func (b *Box) Receive(ctx context.Context, m platform.Incoming) (platform.Taken, error) {
	b.mu.Lock()
	b.got = append(b.got, m)
	answer := b.answer
	b.mu.Unlock()
	b.received <- struct{}{}
	return answer(ctx, m)
}

// Missed implements platform.Inbox.
func (b *Box) Missed(context.Context, platform.Gap) error { return nil }

// Cursor implements platform.Inbox.
func (b *Box) Cursor() string { return "" }

// Got are the messages so far.
func (b *Box) Got() []platform.Incoming {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]platform.Incoming(nil), b.got...)
}

// Do chooses what is done with messages from now on.
func (b *Box) Do(f Receive) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = f
}

// Serve serves a platform until the test ends, or stop is called.
func Serve(t *testing.T, p platform.Platform, in platform.Inbox) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, in) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-served:
				if err != nil {
					t.Errorf("Serve returns %v at its end", err)
				}
			case <-time.After(Patience):
				t.Error("Serve does not end with its context")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// Run checks a platform that start makes anew for each check, with its other side.
func Run(t *testing.T, f Features, start func(t *testing.T) (platform.Platform, Side)) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, Features, platform.Platform, Side){
		"its traits can be used":                                  traits,
		"a message comes in as it was said, and is then taken":    carries,
		"a message is not taken before the bus has it":            waits,
		"a message that the bus refuses for now is to come again": refuses,
		"a part goes out as it is, under its id":                  sends,
		"what the other side says of a send is told":              verdicts,
		"it can be served again":                                  again,
	} {
		t.Run(name, func(t *testing.T) {
			p, side := start(t)
			check(t, f, p, side)
		})
	}
}

// Hello is a message of the suite.
func Hello(id string) platform.Incoming {
	return platform.Incoming{Message: id, Place: events.Place{Chat: "C1", Thread: "1700.1"}, User: "ada", Text: "héllo 👋\n\"quoted\""}
}

func traits(t *testing.T, _ Features, p platform.Platform, _ Side) {
	t.Helper()
	if err := p.Traits().Limit.Validate(); err != nil || p.Kind() == "" {
		t.Errorf("kind %q, limit: %v", p.Kind(), err)
	}
}

// come lets a message come, again and again, until it is taken: a platform needs a moment
// to be served.
func come(t *testing.T, side Side, m platform.Incoming) {
	t.Helper()
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); {
		if taken, again := side.Say(t, m); taken {
			return
		} else if !again {
			t.Fatalf("message %s is neither taken nor to come again", m.Message)
		}
	}
	t.Fatalf("message %s is not taken", m.Message)
}

func carries(t *testing.T, _ Features, p platform.Platform, side Side) {
	t.Helper()
	box := NewBox()
	Serve(t, p, box)
	come(t, side, Hello("m1"))
	got := box.Got()
	if len(got) != 1 {
		t.Fatalf("%d messages came in, want 1", len(got))
	}
	got[0].Data = nil // for the host; each platform has its own
	if diff := cmp.Diff(Hello("m1"), got[0]); diff != "" {
		t.Errorf("it came in otherwise (-want +got):\n%s", diff)
	}
}

func waits(t *testing.T, _ Features, p platform.Platform, side Side) {
	t.Helper()
	box, release := NewBox(), make(chan struct{})
	box.Do(func(ctx context.Context, m platform.Incoming) (platform.Taken, error) {
		select {
		case <-release:
		case <-ctx.Done():
			return platform.Taken{}, context.Cause(ctx)
		}
		return TakeAll(ctx, m)
	})
	Serve(t, p, box)
	said := make(chan bool, 1)
	go func() {
		for {
			taken, again := side.Say(t, Hello("m1"))
			if taken || !again || t.Context().Err() != nil {
				said <- taken
				return
			}
		}
	}()
	<-box.received
	select {
	case <-said:
		t.Fatal("the other side was answered before the bus had the message")
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	if !<-said {
		t.Error("the message was not taken")
	}
}

func refuses(t *testing.T, _ Features, p platform.Platform, side Side) {
	t.Helper()
	box := NewBox()
	box.Do(func(context.Context, platform.Incoming) (platform.Taken, error) {
		return platform.Taken{}, events.Errorf(events.CodeUnavailable, "no bus")
	})
	Serve(t, p, box)
	if taken, again := side.Say(t, Hello("m1")); taken || !again {
		t.Errorf("taken %v, to come again %v", taken, again)
	}
	box.Do(TakeAll)
	come(t, side, Hello("m1"))
}

func outgoing(id string) platform.Outgoing {
	return platform.Outgoing{
		ID: id, Place: events.Place{Chat: "C1", Thread: "1700.1"}, Text: "one\ntwo 👋 \"three\"", Part: 1, Parts: 2,
		Session: "01JSESS10N0000000000000000",
	}
}

// send sends in the background and returns what the other side got and what was told.
func send(t *testing.T, p platform.Platform, side Side, m platform.Outgoing, a Answer) (platform.Outgoing, string, error) {
	t.Helper()
	type told struct {
		message string
		err     error
	}
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	done := make(chan told, 1)
	go func() {
		message, err := p.Send(ctx, m)
		done <- told{message, err}
	}()
	got := side.Next(t, a)
	r := <-done
	return got, r.message, r.err
}

func sends(t *testing.T, f Features, p platform.Platform, side Side) {
	t.Helper()
	Serve(t, p, NewBox())
	for _, id := range []string{"s.1", "s.1", "s.2"} { // sent again under the same id, too
		got, message, err := send(t, p, side, outgoing(id), Answer{Message: "p-" + id})
		if diff := cmp.Diff(outgoing(id), got); diff != "" || err != nil {
			t.Errorf("%v, it went out otherwise (-want +got):\n%s", err, diff)
		}
		if f.Ids && message != "p-"+id {
			t.Errorf("the platform's id is %q", message)
		}
	}
}

func verdicts(t *testing.T, _ Features, p platform.Platform, side Side) {
	t.Helper()
	Serve(t, p, NewBox())
	_, _, err := send(t, p, side, outgoing("a.1"), Answer{Later: 30 * time.Second})
	var later *platform.LaterError
	if !errors.As(err, &later) || later.After < 29*time.Second || later.After > 31*time.Second {
		t.Errorf("a pause of 30 s is told as %v", err)
	}
	_, _, err = send(t, p, side, outgoing("b.1"), Answer{Final: true})
	var final *platform.FinalError
	if !errors.As(err, &final) {
		t.Errorf("a refusal for good is told as %v", err)
	}
	later, final = nil, nil
	_, _, err = send(t, p, side, outgoing("c.1"), Answer{Fail: true})
	if err == nil || errors.As(err, &later) || errors.As(err, &final) {
		t.Errorf("a failure is told as %v", err)
	}
}

func again(t *testing.T, _ Features, p platform.Platform, side Side) {
	t.Helper()
	for _, id := range []string{"m1", "m2"} {
		stop := Serve(t, p, NewBox())
		come(t, side, Hello(id))
		stop()
	}
}
