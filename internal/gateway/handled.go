package gateway

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/termtext"
)

const (
	// outcomeWithin is how long a slash command may take: the most a handler may ask for is
	// an hour, after which the bus itself ends it.
	outcomeWithin = time.Hour + time.Minute
	// menuWithin bounds the look at what handlers there are, for lists.
	menuWithin = 2 * time.Second
)

var commandForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// slashed takes a line apart into the command's name and what was typed behind it and one
// blank, as it was typed.
func slashed(line string) (name events.CommandName, rawArgs string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	return events.CommandName(word), rest, commandForm.MatchString(word)
}

func (c *Chat) invoke(ctx context.Context, line string, async bool) (events.InvocationView, error) {
	name, args, ok := slashed(line)
	if !ok {
		return events.InvocationView{}, errors.New(unknownCommand(line))
	}
	v, err := c.conn.Invoke(ctx, events.InvokeCommand{
		To: string(c.session), Name: name, RawArgs: args, Surface: c.cfg.Surface, Async: async,
	})
	if errors.Is(err, events.ErrOf(events.CodeUnknownCommand)) {
		return c.invokePackage(ctx, line, async)
	}
	return v, err
}

// Give gives a slash command to the process that carries it out and returns what that says.
// It waits for the outcome. A command that failed is an error, and is not given again.
func (c *Chat) Give(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, outcomeWithin)
	defer cancel()
	v, err := c.invoke(ctx, line, false)
	switch {
	case err != nil:
		return "", err
	case v.Error != nil:
		return "", failedCommand(v.Name, *v.Error)
	}
	return v.Reply, nil
}

// GiveAsync is Give without the wait: the front is told of the outcome.
func (c *Chat) GiveAsync(ctx context.Context, line string) error {
	id := events.CommandID(events.NewID())
	name, _, _ := slashed(line)
	c.mu.Lock()
	c.given[id] = name
	c.mu.Unlock()
	v, err := c.invoke(client.WithCommandID(ctx, id), line, true)
	if v.Invocation == "" && !errors.Is(err, events.ErrOf(events.CodeTimeout)) { // no outcome will be told
		c.mu.Lock()
		delete(c.given, id)
		c.mu.Unlock()
	}
	return err
}

func failedCommand(name events.CommandName, e events.Error) error {
	return fmt.Errorf("/%s failed: %s", name, e.Message)
}

// foldInvocation tells of the outcome of own slash commands; done is false for other events.
func (r *runner) foldInvocation(rec events.Record) (done bool, err error) {
	switch rec.Type {
	case events.TypeCommandCompleted:
		return true, with(rec, func(d events.CommandCompleted) {
			if r.wasGiven(d.Invocation) {
				r.front.Notice(orText(d.Reply, "/"+string(d.Name)+" is done"))
			}
		})
	case events.TypeCommandFailed:
		return true, with(rec, func(d events.CommandFailed) {
			if r.wasGiven(d.Invocation) {
				r.front.Notice(failedCommand(d.Name, d.Error).Error())
			}
		})
	}
	return false, nil
}

// wasGiven reports, once, whether the outcome of a slash command is to be told here.
func (r *runner) wasGiven(id events.CommandID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.given[id]
	delete(r.given, id)
	return ok
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Help lists the commands that can be typed: the chat's own and those of handlers. When the
// bus does not say in time which those are, it says so.
func (c *Chat) Help(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, menuWithin)
	defer cancel()
	all, err := c.conn.SlashCommands(ctx, c.cfg.Surface)
	var b strings.Builder
	b.WriteString(Help)
	for _, item := range all {
		if item.Handler != "" {
			fmt.Fprintf(&b, "%-9s %s (%s)\n", "/"+string(item.Name), termtext.Visible(item.Help), item.Handler)
		}
	}
	for _, cmd := range c.packageCommands(ctx) {
		fmt.Fprintf(&b, "%-9s %s (package)\n", "/"+cmd.Name, termtext.Visible(cmd.Help))
	}
	if err != nil {
		b.WriteString("more may be there: the bus does not say now\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// CommandNames returns the names of what can be typed here, in their order.
func (c *Chat) CommandNames(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, menuWithin)
	defer cancel()
	all, err := c.conn.SlashCommands(ctx, c.cfg.Surface)
	if err != nil {
		return nil, fmt.Errorf("ask for the commands: %w", err)
	}
	out := make([]string, len(all))
	for i, item := range all {
		out[i] = string(item.Name)
	}
	return out, nil
}

// Queue lists what waits for its turn, a line each.
func (c *Chat) Queue(ctx context.Context) (string, error) {
	v, err := c.conn.Show(ctx, string(c.session))
	if err != nil {
		return "", fmt.Errorf("read the session's state: %w", err)
	}
	if len(v.Queue) == 0 {
		return "nothing waits\n", nil
	}
	var b strings.Builder
	for _, item := range v.Queue {
		text := termtext.Cut(termtext.Visible(item.Text), 60)
		fmt.Fprintf(&b, "%s  %-10s %-12s %s\n", item.Receipt, item.State, item.Sender, text)
	}
	return b.String(), nil
}
