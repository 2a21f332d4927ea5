package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"keryx/client"
	"keryx/events"
	"keryx/internal/termtext"
)

// shortID is how many characters from an exec's end name it in a chat: the beginnings of
// ids that were made close together are the same.
const shortID = 6

// errNoOperator is why a chat that no operator sits at starts nothing.
var errNoOperator = events.Errorf(events.CodeForbidden,
	"a gateway may not start commands: /bg works where the operator sits, in 'bus up'; else use 'bus exec --background'")

// Background starts a command of the shell in the session's target, in the operator's name,
// and returns once the bus has the request. The session is told of the end. It is refused,
// with code forbidden, unless an operator sits at the chat ([Config.Operator]).
func (c *Chat) Background(ctx context.Context, command string) (events.ExecID, error) {
	if c.cfg.Operator == nil {
		return "", errNoOperator
	}
	if strings.TrimSpace(command) == "" {
		return "", errors.New("/bg needs a command, e.g. /bg make test")
	}
	v, err := c.conn.Show(ctx, string(c.session))
	if err != nil {
		return "", fmt.Errorf("read the session's state: %w", err)
	}
	sel, err := c.cfg.Operator.AwaitTarget(ctx, v.Policy.Target)
	if err != nil {
		return "", fmt.Errorf("start in the background: %w", err)
	}
	a, err := c.cfg.Operator.StartExec(ctx, events.StartExec{Session: c.session, Selection: sel, Spec: events.ExecSpec{
		Argv: []string{"/bin/sh", "-c", "--", command}, Background: true, // "--": it may begin with a dash
	}})
	if err != nil {
		return "", fmt.Errorf("start in the background: %w", err)
	}
	return a.Exec, nil
}

// Jobs lists what runs for the session, in the background or not.
func (c *Chat) Jobs(ctx context.Context) (string, error) {
	v, err := c.conn.Show(ctx, string(c.session))
	if err != nil {
		return "", fmt.Errorf("read the session's state: %w", err)
	}
	if len(v.Execs) == 0 {
		return "no jobs", nil
	}
	var b strings.Builder
	for _, e := range v.Execs {
		state := "starting"
		if e.Started {
			state = "running"
		}
		if !e.Background {
			state += " (of a turn)"
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", ending(e.Exec), state, termtext.Visible(commandOf(e.Argv)))
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// Kill asks for the end of an exec of the session, named by its id or the end of that, and
// returns its id; that it has ended shows in the record.
func (c *Chat) Kill(ctx context.Context, name string) (events.ExecID, error) {
	v, err := c.conn.Show(ctx, string(c.session))
	if err != nil {
		return "", fmt.Errorf("read the session's state: %w", err)
	}
	id, err := jobNamed(v.Execs, strings.ToUpper(strings.TrimSpace(name)))
	if err != nil {
		return "", err
	}
	_, err = c.stopper().StopExec(ctx, events.StopExec{Session: c.session, Exec: id})
	return id, err
}

// stopper is who stops: the operator, or the gateway itself, which may stop what belongs to
// its own session.
func (c *Chat) stopper() *client.Conn {
	if c.cfg.Operator != nil {
		return c.cfg.Operator
	}
	return c.conn
}

func jobNamed(all []events.ExecView, name string) (events.ExecID, error) {
	if name == "" {
		return "", errors.New("/kill needs a job, see /jobs")
	}
	var found []events.ExecID
	for _, e := range all {
		if strings.HasSuffix(string(e.Exec), name) {
			found = append(found, e.Exec)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", events.Errorf(events.CodeUnknownExec, "no job %s runs, see /jobs", termtext.Visible(name))
	}
	return "", events.Errorf(events.CodeAmbiguousName, "%d jobs end with %s, name more of it", len(found), name)
}

func ending(id events.ExecID) string { return string(id[max(0, len(id)-shortID):]) }

// commandOf is a command as it was typed, where the chat's or the shell host's shell runs it.
func commandOf(argv []string) string {
	if len(argv) == 4 && slices.Equal(argv[:3], []string{"/bin/sh", "-c", "--"}) {
		return argv[3]
	}
	return strings.Join(argv, " ")
}

// jobCommand does a command of a chat that is about jobs or setups, and returns what to say.
func (c *Chat) jobCommand(ctx context.Context, command Command, text string) (string, error) {
	switch command {
	case CommandBackground:
		id, err := c.Background(ctx, text)
		return "job " + ending(id) + " starts; /jobs lists, /kill " + ending(id) + " ends it", err
	case CommandKill:
		id, err := c.Kill(ctx, text)
		return "job " + ending(id) + " is being stopped", err
	case CommandSetup:
		return c.Setup(ctx, text)
	}
	return c.Jobs(ctx)
}
