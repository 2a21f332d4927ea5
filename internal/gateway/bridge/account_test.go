package bridge_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway/bridge"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/split"
	"keryx/internal/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// room is a chat platform in this process. What the account says in it comes back.
type room struct {
	mu   sync.Mutex
	in   platform.Inbox
	said []platform.Outgoing
	echo bool
}

func (r *room) Kind() string { return "room" }
func (r *room) Traits() platform.Traits {
	return platform.Traits{Limit: split.Limit{Max: 200, Unit: split.UTF16}}
}

func (r *room) Serve(ctx context.Context, in platform.Inbox) error {
	r.mu.Lock()
	r.in = in
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.in = nil
	r.mu.Unlock()
	return nil
}

func (r *room) Send(ctx context.Context, m platform.Outgoing) (string, error) {
	r.mu.Lock()
	r.said = append(r.said, m)
	in, echo := r.in, r.echo
	r.mu.Unlock()
	if echo && in != nil {
		go func() {
			_, _ = in.Receive(ctx, platform.Incoming{Message: "p-" + m.ID, Place: m.Place, Text: m.Text, User: "bot"})
		}()
	}
	return "p-" + m.ID, nil
}

func (r *room) all() []platform.Outgoing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}

// say says something until it is taken, as a platform that tries again does.
func (r *room) say(t *testing.T, place events.Place, id, text string) platform.Taken {
	t.Helper()
	var taken platform.Taken
	await(t, "message "+id+" to be taken", func() bool {
		r.mu.Lock()
		in := r.in
		r.mu.Unlock()
		if in == nil {
			return false
		}
		var err error
		taken, err = in.Receive(t.Context(), platform.Incoming{Message: id, Place: place, Text: text, User: "ada"})
		return err == nil
	})
	return taken
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

var quiet = slog.New(slog.DiscardHandler)

func startBus(t *testing.T) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{Dir: t.TempDir(), Logger: quiet, AuthorityTTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop bus: %v", err)
		}
	})
	return n
}

func connect(t *testing.T, n *node.Node, name events.PrincipalName, role events.Role) *client.Conn {
	t.Helper()
	c, err := n.Connect(t.Context(), events.Principal{Profile: "default", Name: name, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// background runs something until the test ends or stop is called.
func background(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// answering runs a host that says in which words it was asked.
func answering(t *testing.T, n *node.Node) {
	t.Helper()
	c := connect(t, n, "host", events.RoleHost)
	background(t, func(ctx context.Context) error {
		return c.ServeHost(ctx, client.HostConfig{Logger: quiet, Handle: func(_ context.Context, turn *client.Turn) client.Result {
			var words []string
			for _, it := range turn.Items {
				words = append(words, it.Body.Text)
			}
			return client.Result{Outcome: events.OutcomeCompleted, Reply: "re: " + strings.Join(words, ", ")}
		}})
	})
}

func account(t *testing.T, c *client.Conn, r *room, links *bridge.Links) (stop func()) {
	t.Helper()
	a, err := bridge.New(bridge.Config{
		Conn: c, Name: "bot", Platform: r, TTL: 2 * time.Second, Links: links, Logger: quiet,
		Policy: events.Policy{Hosts: []events.PrincipalName{"host"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return background(t, a.Run)
}

func TestCase_I7_EachReplyGoesToThePlaceThatItsMessageCameFrom(t *testing.T) {
	t.Parallel()
	n := startBus(t)
	answering(t, n)
	r := &room{echo: true}
	gw := connect(t, n, "gw", events.RoleGateway)
	account(t, gw, r, nil)
	places := []events.Place{{Chat: "C1", Thread: "1700.1"}, {Chat: "C1", Thread: "1700.2"}, {Chat: "D1"}}
	const each = 17
	var sessions []events.SessionID
	for i := range each * len(places) {
		p := places[i%len(places)]
		taken := r.say(t, p, fmt.Sprint("m", i), fmt.Sprintf("%s/%s %d", p.Chat, p.Thread, i))
		sessions = append(sessions, taken.Session)
	}
	operator := connect(t, n, "boss", events.RoleOperator)
	if _, err := operator.Submit(t.Context(), events.Submit{To: "room:bot:C1:1700.1", Kind: events.ItemSystem, Body: events.Body{Text: "C1/1700.1 proactive"}}); err != nil {
		t.Fatal(err)
	}
	await(t, "all replies", func() bool { return len(r.all()) >= each*len(places)+1 })
	for _, m := range r.all() {
		if want := fmt.Sprintf("re: %s/%s ", m.Place.Chat, m.Place.Thread); !strings.HasPrefix(m.Text, want) {
			t.Errorf("%q was said in %+v", m.Text, m.Place)
		}
	}
	if slices.Sort(sessions); len(slices.Compact(sessions)) != len(places) {
		t.Errorf("%d sessions were made for %d places", len(slices.Compact(sessions)), len(places))
	}
	list := connect(t, n, "eye", events.RoleObserver)
	for _, p := range places {
		view, err := list.Show(t.Context(), "room:bot:"+strings.TrimSuffix(p.Chat+":"+p.Thread, ":"))
		if err != nil {
			t.Fatal(err)
		}
		want := each
		if p.Thread == "1700.1" {
			want++
		}
		if view.Turns != want || view.Pending != 0 {
			t.Errorf("%+v has %d turns and %d waiting, want %d: an echo came in", p, view.Turns, view.Pending, want)
		}
	}
}

func TestCase_I1_AMessageThatComesAgainIsTakenOnce(t *testing.T) {
	t.Parallel()
	n := startBus(t)
	r := &room{}
	gw := connect(t, n, "gw", events.RoleGateway)
	account(t, gw, r, nil)
	place := events.Place{Chat: "C1"}
	var wg sync.WaitGroup
	receipts := make([]events.ReceiptID, 3)
	r.say(t, events.Place{Chat: "C0"}, "first", "the account is served")
	for i := range receipts {
		wg.Go(func() { receipts[i] = r.say(t, place, "Ev-1", "hello").Receipt })
	}
	wg.Wait()
	if receipts[0] == "" || receipts[0] != receipts[1] || receipts[1] != receipts[2] {
		t.Errorf("the receipts are %v", receipts)
	}
	view, err := gw.Show(t.Context(), "room:bot:C1")
	if err != nil {
		t.Fatal(err)
	}
	if len(view.Queue) != 1 {
		t.Errorf("%d messages wait, want 1", len(view.Queue))
	}
}

func TestCase_C3_MessagesBeforeAnyHostAreAnsweredWhenOneComes(t *testing.T) {
	t.Parallel()
	n := startBus(t)
	r := &room{}
	account(t, connect(t, n, "gw", events.RoleGateway), r, nil)
	for i := range 3 {
		r.say(t, events.Place{Chat: "C1"}, fmt.Sprint("m", i), fmt.Sprint("word ", i))
	}
	answering(t, n)
	await(t, "the replies", func() bool { return len(r.all()) == 3 })
	for i, m := range r.all() {
		if want := fmt.Sprint("re: word ", i); m.Text != want {
			t.Errorf("said %q, want %q", m.Text, want)
		}
	}
}

func TestASecondChatJoinsAConversationByACodeThatWorksOnce(t *testing.T) {
	t.Parallel()
	n := startBus(t)
	answering(t, n)
	r := &room{}
	account(t, connect(t, n, "gw", events.RoleGateway), r, bridge.NewLinks())
	first, second, third := events.Place{Chat: "A"}, events.Place{Chat: "B"}, events.Place{Chat: "C"}
	last := func(p events.Place, n int) string {
		t.Helper()
		var texts []string
		await(t, fmt.Sprintf("%d things said in %s", n, p.Chat), func() bool {
			texts = nil
			for _, m := range r.all() {
				if m.Place == p {
					texts = append(texts, m.Text)
				}
			}
			return len(texts) >= n
		})
		return texts[n-1]
	}
	r.say(t, third, "c0", "/link")
	if got := last(third, 1); !strings.Contains(got, "no conversation") {
		t.Errorf("a chat without a conversation is told %q", got)
	}
	session := r.say(t, first, "a1", "hello").Session
	last(first, 1)
	r.say(t, first, "a2", "/link")
	_, rest, ok := strings.Cut(last(first, 2), "/link ")
	code, _, _ := strings.Cut(rest, " ")
	if !ok || len(code) != 8 {
		t.Fatalf("the code is %q", code)
	}
	r.say(t, second, "b1", "/link "+strings.ToLower(code))
	last(second, 1)
	if got := r.say(t, second, "b2", "here I am").Session; got != session {
		t.Errorf("the second chat speaks to session %s, not %s", got, session)
	}
	if got := last(second, 2); got != "re: here I am" {
		t.Errorf("it is answered %q", got)
	}
	r.say(t, third, "c1", "/link "+code)
	if got := last(third, 2); !strings.Contains(got, "was used") {
		t.Errorf("a used code is answered %q", got)
	}
}

func TestAnotherBridgeGoesOnWhereTheFirstOneEnded(t *testing.T) {
	t.Parallel()
	n := startBus(t)
	answering(t, n)
	r := &room{}
	gw := connect(t, n, "gw", events.RoleGateway)
	stop := account(t, gw, r, nil)
	r.say(t, events.Place{Chat: "C1"}, "m1", "one")
	await(t, "a reply", func() bool { return len(r.all()) == 1 })
	second := &room{}
	account(t, connect(t, n, "gw", events.RoleGateway), second, nil)
	stop()
	if taken := second.say(t, events.Place{Chat: "C1"}, "m1", "one"); !taken.Duplicate {
		t.Error("what the first bridge took is taken anew")
	}
	second.say(t, events.Place{Chat: "C1"}, "m2", "two")
	await(t, "the second reply", func() bool { return len(second.all()) >= 1 })
	if got := second.all(); len(got) != 1 || got[0].Text != "re: two" {
		t.Errorf("the second bridge said %+v", got)
	}
}
