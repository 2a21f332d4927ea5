package client_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

var errEnough = errors.New("enough")

func show(ctx context.Context, c *client.Conn, to string) (events.SessionView, error) {
	return c.Show(ctx, to)
}

func named(id events.SessionID) events.SessionView {
	return events.SessionView{SessionSummary: events.SessionSummary{Session: id}}
}

func TestACommandWhoseFirstAnswerIsLostIsSentAgainWithTheSameID(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ids := make(chan string, 10)
	respond(t, s, func(c command) {
		ids <- c.id()
		if len(ids) > 1 {
			c.answer(named("S"))
		}
	})
	begun := time.Now()
	v, err := show(within(t, 10*time.Second), connect(t, s), "x")
	if err != nil || v.Session != "S" {
		t.Fatalf("got %q, %v", v.Session, err)
	}
	if first, second := <-ids, <-ids; first != second || first == "" {
		t.Errorf("the ids are %q and %q, want one", first, second)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("sent again after %v, want about 2 s", took)
	}
}

func TestALateAnswerToTheFirstTryCounts(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var first *command
	respond(t, s, func(c command) {
		if first == nil {
			first = &c
			return
		}
		first.answer(named("S"))
	})
	if v, err := show(within(t, 5*time.Second), connect(t, s), "x"); err != nil || v.Session != "S" {
		t.Fatalf("got %q, %v", v.Session, err)
	}
}

func TestOfTwoAnswersTheFirstCountsAndTheSecondDisturbsNobody(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	respond(t, s, func(c command) {
		to := ask[events.SessionShow](c).To
		c.answer(named(events.SessionID(to)))
		c.answer(named("second"))
		c.refuse(events.Errorf(events.CodeInternal, "third"))
	})
	conn := connect(t, s)
	for _, to := range []string{"a", "b", "c"} {
		if v, err := show(within(t, 5*time.Second), conn, to); err != nil || string(v.Session) != to {
			t.Fatalf("asked for %q, got %q, %v", to, v.Session, err)
		}
	}
}

func TestRefusalsThatPassAreTriedAgainAndOthersAreNot(t *testing.T) {
	t.Parallel()
	for code, again := range map[events.Code]bool{
		events.CodeUnavailable: true, events.CodeConflict: true, events.CodeRateLimited: true,
		events.CodeForbidden: false, events.CodeStoreFull: false, events.CodeUnknownSession: false,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			var tries atomic.Int32
			respond(t, s, func(c command) {
				if tries.Add(1) < 4 {
					c.refuse(events.Errorf(code, "not now").With("k", "v"))
					return
				}
				c.answer(named("S"))
			})
			_, err := show(within(t, 10*time.Second), connect(t, s), "x")
			if again {
				if err != nil || tries.Load() != 4 {
					t.Errorf("got %v after %d tries, want success at the 4th", err, tries.Load())
				}
				return
			}
			if e := wantCode(t, err, code); tries.Load() != 1 || e.Details["k"] != "v" {
				t.Errorf("got %v after %d tries, want the refusal at the 1st", e, tries.Load())
			}
		})
	}
}

func TestACommandWaitsForAnAuthorityThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := connect(t, s)
	got := make(chan error, 1)
	go func() { _, err := show(context.Background(), conn, "x"); got <- err }()
	await(t, "a refusal for want of responders", func() bool { return conn.NATS().Stats().InMsgs > 0 })
	respond(t, s, func(c command) { c.answer(named("S")) })
	if err := receive(t, "the answer", got); err != nil {
		t.Errorf("show: %v", err)
	}
}

func TestATimeoutSaysWhatWasAskedForHowLongAndWhatStoodInTheWay(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := connect(t, s)
	_, err := show(within(t, 150*time.Millisecond), conn, "x")
	e := wantCode(t, err, events.CodeTimeout)
	if !strings.Contains(e.Message, "session.show") || !regexp.MustCompile(`within \d+(\.\d+)?m?s`).MatchString(e.Message) || e.Details["last_code"] != "unavailable" {
		t.Errorf("the error is %v, details %v", e, e.Details)
	}
	if !events.IsULID(e.Details["command"]) {
		t.Errorf("the error names the command %q", e.Details["command"])
	}
}

func TestAContextWithoutADeadlineGetsThePatience(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	respond(t, s, func(command) {})
	conn := connect(t, s, func(c *client.Config) { c.Patience = 100 * time.Millisecond })
	begun := time.Now()
	_, err := show(context.Background(), conn, "x")
	wantCode(t, err, events.CodeTimeout)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("gave up after %v", took)
	}
}

func TestACancelledCommandEndsWithTheCause(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	respond(t, s, func(command) { cancel(errEnough) })
	if _, err := show(ctx, connect(t, s), "x"); !errors.Is(err, errEnough) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestCase_H5_what_is_too_large_is_refused_at_once_and_the_connection_goes_on(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var taken atomic.Int32
	respond(t, s, func(c command) { taken.Add(1); c.answer(events.Receipt{ID: "R"}) })
	conn := connect(t, s)
	huge := client.WithTrace(within(t, time.Second), "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01", "a="+text(events.MaxHeaders))
	for name, err := range map[string]error{
		"data over 1 MiB":     submitErr(within(t, time.Second), conn, text(events.MaxData+1)),
		"headers over 32 KiB": submitErr(huge, conn, "small"),
		"data of 4 MiB":       submitErr(within(t, time.Second), conn, text(events.MaxPayload)),
	} {
		if events.CodeOf(err) != events.CodeTooLarge {
			t.Errorf("%s: got %v, want too_large", name, err)
		}
	}
	if n := taken.Load(); n != 0 {
		t.Errorf("%d of them reached the bus", n)
	}
	if err := submitErr(within(t, time.Second), conn, "0123456789"); err != nil {
		t.Errorf("a small one afterwards: %v", err)
	}
	if err := submitErr(within(t, 5*time.Second), conn, text(events.MaxData-200)); err != nil {
		t.Errorf("one just below the limit: %v", err)
	}
	if n := conn.NATS().Stats().Reconnects; n != 0 {
		t.Errorf("the connection was made anew %d times", n)
	}
}

func submitErr(ctx context.Context, c *client.Conn, text string) error {
	_, err := c.Submit(ctx, events.Submit{To: "x", Body: events.Body{Text: text}})
	return err
}

func TestACommandOutlivesARestartOfTheBus(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ids := make(chan string, 10)
	respond(t, s, func(c command) { ids <- c.id() })
	conn := connect(t, s)
	got := make(chan error, 1)
	go func() { _, err := show(context.Background(), conn, "x"); got <- err }()
	first := receive(t, "the first try", ids)
	port := samePort(t, s)
	s.Shutdown()
	s.WaitForShutdown()
	s = startServer(t, port)
	respond(t, s, func(c command) { ids <- c.id(); c.answer(named("S")) })
	if err := receive(t, "the answer", got); err != nil {
		t.Errorf("show: %v", err)
	}
	if second := receive(t, "the second try", ids); second != first {
		t.Errorf("the ids are %q and %q, want one", first, second)
	}
}

func TestWhatTheServerForbidsFailsAtOnceAndNotByTimeout(t *testing.T) {
	t.Parallel()
	creds, public, err := client.NewCredentials(principal("gw", events.RoleGateway))
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) {
		o.Nkeys = []*server.NkeyUser{{Nkey: public, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"kx.cmd.default.gw.session.list"}},
			Subscribe: &server.SubjectPermission{Allow: []string{events.InboxAll(profile, "gw")}},
		}}}
		o.AlwaysEnableNonce = true
	})
	conn := connect(t, s, func(c *client.Config) { c.Credentials = creds })
	for name, try := range map[string]func(context.Context) error{
		"a command":   func(ctx context.Context) error { return submitErr(ctx, conn, "x") },
		"a page":      func(ctx context.Context) error { _, err := conn.Page(ctx, "S", 0, 0); return err },
		"a tips read": func(ctx context.Context) error { _, err := conn.Tips(ctx); return err },
		"a host's orders": func(ctx context.Context) error {
			return conn.ServeHost(ctx, client.HostConfig{Handle: func(context.Context, *client.Turn) client.Result { return client.Result{} }})
		},
		"output": func(ctx context.Context) error {
			_, err := conn.Output(ctx, "exec", events.SessionID(events.NewID()), events.ExecID(events.NewID()), func(client.Chunk) {})
			return err
		},
		"a follower": func(ctx context.Context) error {
			for _, err := range conn.Follow(ctx, client.FollowConfig{}) {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			wantCode(t, try(within(t, 5*time.Second)), events.CodeForbidden)
			if took := time.Since(begun); took > time.Second {
				t.Errorf("refused after %v", took)
			}
		})
	}
}

func TestTheTraceOfTheContextIsCarriedAndElseOneBegins(t *testing.T) {
	t.Parallel()
	const parent, state = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01", "vendor=1"
	s := startServer(t)
	seen := make(chan map[string]any, 10)
	respond(t, s, func(c command) { seen <- c.event.Extensions(); c.answer(named("S")) })
	conn := connect(t, s)
	for name, ctx := range map[string]context.Context{
		"given": client.WithTrace(t.Context(), parent, state), "none": t.Context(), "malformed": client.WithTrace(t.Context(), "00-zz", state),
	} {
		if _, err := show(ctx, conn, "x"); err != nil {
			t.Fatal(err)
		}
		got := <-seen
		if carried := got[events.ExtTraceParent] == parent && got[events.ExtTraceState] == state; carried != (name == "given") {
			t.Errorf("%s: the command carries %v", name, got)
		}
		if p, _ := got[events.ExtTraceParent].(string); len(p) != len(parent) {
			t.Errorf("%s: the traceparent is %q", name, p)
		}
	}
}

func TestCommandsOnAClosedConnectionEndAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	asked := make(chan struct{}, 10)
	respond(t, s, func(command) { asked <- struct{}{} })
	conn := connect(t, s)
	got := make(chan error, 1)
	go func() { _, err := show(context.Background(), conn, "x"); got <- err }()
	receive(t, "the command", asked)
	mustClose(t, conn)
	if err := receive(t, "its end", got); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("under way: got %v", err)
	}
	_, err := show(context.Background(), conn, "x")
	if wantCode(t, err, events.CodeUnavailable); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("afterwards: got %v", err)
	}
	mustClose(t, conn)
}
