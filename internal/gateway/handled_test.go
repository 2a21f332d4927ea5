package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/node"
)

// handler carries out slash commands until the test ends.
func handler(t *testing.T, c *client.Conn, commands ...client.Command) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- c.ServeHandler(ctx, client.HandlerConfig{Commands: commands}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve handler: %v", err)
		}
	})
}

func spec(name events.CommandName, surfaces ...string) events.CommandSpec {
	return events.CommandSpec{Name: name, Help: "what " + string(name) + " does", Surfaces: surfaces}
}

// commands carries out /shout, /fail, /panic and, elsewhere, /hidden.
func commands(t *testing.T, n *node.Node) {
	t.Helper()
	c := connect(t, n, "tools", events.RoleHost)
	handler(t, c,
		client.Command{CommandSpec: spec("shout"), Run: func(_ context.Context, i client.Invocation) (string, error) {
			if _, told := i.Field(events.FieldSurface); told {
				return "", errors.New("it was told a field that it does not accept")
			}
			return strings.ToUpper(i.RawArgs), nil
		}},
		client.Command{CommandSpec: spec("fail"), Run: func(context.Context, client.Invocation) (string, error) { return "", errors.New("no disk") }},
		client.Command{CommandSpec: spec("panic"), Run: func(context.Context, client.Invocation) (string, error) { panic("secret") }},
		client.Command{CommandSpec: spec("hidden", "elsewhere"), Run: func(context.Context, client.Invocation) (string, error) { return "", nil }},
	)
	op := connect(t, n, "looker", events.RoleOperator)
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		all, err := op.SlashCommands(t.Context(), "pipe")
		if err == nil && len(all) > len(events.GatewayCommands()) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the handler is not there: %v, %v", all, err)
		}
	}
}

func TestAHandlersCommandsAreGivenInAPipe(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	commands(t, n)
	var out, told bytes.Buffer
	p := &gateway.Pipe{In: io.NopCloser(strings.NewReader("/shout a  b \n/fail\n/panic\n/hidden\n/help\n/queue\n")), Out: &out, Err: &told}
	err := gateway.Hold(t.Context(), gateway.Config{
		Conn: connect(t, n, "cli", events.RoleGateway), Key: "k", Surface: "pipe", Logger: slog.New(slog.DiscardHandler),
	}, p)
	if !errors.Is(err, gateway.ErrNotDone) {
		t.Errorf("a command that failed counts as done: %v", err)
	}
	said := told.String()
	for _, want := range []string{"A  B \n", "/fail failed: no disk\n", "/panic failed: the handler panicked\n", "no command /hidden", "/shout    what shout does (tools)\n", "nothing waits\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("told\n%s\nwithout %q", said, want)
		}
	}
	if strings.Contains(said, "secret") || strings.Contains(said, "hidden does") || out.Len() > 0 {
		t.Errorf("told %s, out %s", said, &out)
	}
}

func TestTheOutcomeOfAnAsyncCommandIsToldToWhoGaveItAlone(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	commands(t, n)
	mine, theirs := newFront(), newFront()
	a := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k", Surface: "terminal"}, mine)
	b := chat(t, gateway.Config{Conn: connect(t, n, "web", events.RoleOperator), Key: "k", Surface: "web"}, theirs)
	for _, line := range []string{"/shout hello", "/fail"} {
		if err := a.GiveAsync(t.Context(), line); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.GiveAsync(t.Context(), "/nothing"); err == nil || !strings.Contains(err.Error(), "no command /nothing") {
		t.Errorf("a command that is not there: %v", err)
	}
	mine.line(t, "notice HELLO")
	mine.line(t, "notice /fail failed: no disk")
	if err := b.GiveAsync(t.Context(), "/shout me"); err != nil {
		t.Fatal(err)
	}
	theirs.line(t, "notice ME")
	for _, l := range append(only(theirs.all(), "notice HELLO"), only(mine.all(), "notice ME")...) {
		t.Errorf("the other was told %q", l)
	}
}

func TestASecondHandlerOfANameIsRefused(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	commands(t, n)
	err := connect(t, n, "rival", events.RoleGateway).ServeCommand(t.Context(), client.Command{CommandSpec: spec("shout")})
	if !errors.Is(err, events.ErrOf(events.CodeNameTaken)) || !strings.Contains(err.Error(), "tools") || !strings.Contains(err.Error(), "rival") {
		t.Errorf("refused as %v", err)
	}
}
