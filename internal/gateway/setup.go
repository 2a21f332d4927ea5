package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/termtext"
)

// errNoConsenter is why a chat that no operator sits at consents to nothing.
var errNoConsenter = events.Errorf(events.CodeForbidden,
	"a gateway may not consent: /setup accept works where the operator sits, in 'bus up'; else use 'bus setup run'")

// setupNotices is how many lines on setups may wait to be told.
const setupNotices = 64

// Setup does what /setup asks for, and returns what to say: NAME plans the setup of a
// package for this session and shows it; accept RUN consents to the plan, in the name of
// the operator who sits at the chat, and runs it, and the front is told of its progress;
// cancel RUN ends it. Accepting is refused, with code forbidden, where no operator sits.
func (c *Chat) Setup(ctx context.Context, text string) (string, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "":
		return "", errors.New("/setup needs a package, or accept or cancel with a run")
	case "accept":
		return c.acceptSetup(ctx, rest)
	case "cancel":
		return c.cancelSetup(ctx, rest)
	}
	return c.planSetup(ctx, strings.TrimSpace(text))
}

// planSetup shows everything that the person is asked to consent to.
func (c *Chat) planSetup(ctx context.Context, pack string) (string, error) {
	v, err := c.conn.Show(ctx, string(c.session))
	if err != nil {
		return "", fmt.Errorf("read the session's state: %w", err)
	}
	a, err := c.conn.PlanSetup(ctx, events.PlanSetup{Package: pack, Target: v.Policy.Target, To: string(c.session)})
	if err != nil {
		return "", err
	}
	s, err := c.conn.Setup(ctx, a.Run)
	if err != nil {
		return "", err
	}
	p := s.Plan
	var b strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", what, termtext.Visible(fmt.Sprintf(format, args...)))
	}
	row("package", "%s, %s %s from %s", p.Key, p.Name, p.Version, p.Source)
	row("directory", "%s", p.Dir)
	row("installs", "in %s, by %s, target %s, profile %s", p.Home, p.Executor, p.Target, p.Profile)
	row("command", "%s", strings.Join(p.Setup.Command, " "))
	row("time limit", "%s", time.Duration(p.Setup.TimeoutMS)*time.Millisecond)
	for _, f := range p.Files {
		row("file", "%s %d bytes %s", f.SHA256, f.Bytes, f.Path)
	}
	row("revision", "%s", p.Revision)
	fmt.Fprintf(&b, "/setup accept %s runs it, /setup cancel %s does not", runEnding(p.Run), runEnding(p.Run))
	return b.String(), nil
}

func runEnding(id events.RunID) string { return string(id[max(0, len(id)-shortID):]) }

// acceptSetup consents to a plan, as it is on record, and runs it.
func (c *Chat) acceptSetup(ctx context.Context, name string) (string, error) {
	if c.cfg.Operator == nil {
		return "", errNoConsenter
	}
	run, err := c.setupNamed(ctx, name)
	if err != nil {
		return "", err
	}
	if _, err := c.cfg.Operator.ConsentSetup(ctx, events.ConsentSetup{Run: run.Run, Revision: run.Revision}); err != nil {
		return "", err
	}
	if _, err := c.cfg.Operator.RunSetup(ctx, run.Run, run.Revision); err != nil {
		return "", err
	}
	select {
	case c.watch <- run.Run:
	default: // too many at once: bus setup watch shows it
	}
	return "setup " + runEnding(run.Run) + " runs; /setup cancel " + runEnding(run.Run) + " ends it", nil
}

func (c *Chat) cancelSetup(ctx context.Context, name string) (string, error) {
	run, err := c.setupNamed(ctx, name)
	if err != nil {
		return "", err
	}
	a, err := c.conn.CancelSetup(ctx, run.Run, "/setup cancel")
	return fmt.Sprintf("setup %s is %s", runEnding(a.Run), a.State), err
}

// setupNamed returns the run that a person means by its id, or by the end of that.
func (c *Chat) setupNamed(ctx context.Context, name string) (events.SetupSummary, error) {
	name = strings.ToUpper(name)
	if len(name) < shortID {
		return events.SetupSummary{}, fmt.Errorf("name a run by its id, or by the last %d characters of it", shortID)
	}
	runs, err := c.conn.Setups(ctx, events.SetupList{})
	if err != nil {
		return events.SetupSummary{}, err
	}
	var found []events.SetupSummary
	for _, r := range runs {
		if strings.HasSuffix(string(r.Run), name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return events.SetupSummary{}, events.Errorf(events.CodeUnknownRun, "no setup %s", termtext.Visible(name))
	}
	return events.SetupSummary{}, events.Errorf(events.CodeAmbiguousName, "%d setups end with %s, name more of it", len(found), termtext.Visible(name))
}

// watchSetups tells how the setups go on that were accepted here. It ends with ctx.
func (c *Chat) watchSetups(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-c.watch:
			watching.Go(func() { c.watchSetup(ctx, id) })
		}
	}
}

func (c *Chat) watchSetup(ctx context.Context, id events.RunID) {
	step := -1
	last, err := c.conn.WatchSetup(ctx, id, func(now events.SetupSummary) bool {
		if now.State == events.SetupStateRunning && now.Progress.Step != step {
			step = now.Progress.Step
			c.say(ctx, fmt.Sprintf("setup %s: %d %% %s", runEnding(id), now.Progress.Percent, termtext.Visible(now.Progress.Message)))
		}
		return true
	})
	if ctx.Err() != nil {
		return
	}
	text := fmt.Sprintf("setup %s %s", runEnding(id), last.State)
	if last.Message != "" {
		text += ": " + termtext.Visible(last.Message)
	}
	if err != nil {
		text = fmt.Sprintf("setup %s is no longer followed: %v", runEnding(id), err)
	}
	c.say(ctx, text)
}

// say hands a line to the goroutine that talks to the front.
func (c *Chat) say(ctx context.Context, text string) {
	select {
	case c.said <- text:
	case <-ctx.Done():
	}
}
