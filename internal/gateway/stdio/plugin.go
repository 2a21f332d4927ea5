package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/split"
)

// Times of a plugin.
const (
	// helloWithin is how long a plugin may take to say hello.
	helloWithin = 10 * time.Second
	// stopWithin is how long a plugin may take to end when its input has ended.
	stopWithin = 5 * time.Second
)

// Config says which plugin to run. Account and Command are needed.
type Config struct {
	Account events.AccountName
	// Command is the argv; no shell is between.
	Command []string
	Dir     string
	// Env is added to this process's environment, as NAME=value.
	Env []string
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Plugin is a platform that a process speaks for.
type Plugin struct {
	cfg Config

	mu      sync.Mutex
	limit   split.Limit
	running *conversation
	changed chan struct{} // closed when running changed
}

var _ platform.Platform = (*Plugin)(nil)

// New returns a plugin that is not started.
func New(cfg Config) (*Plugin, error) {
	if len(cfg.Command) == 0 || cfg.Command[0] == "" {
		return nil, errors.New("a plugin needs a command")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Plugin{cfg: cfg, limit: split.Limit{Max: defaultMax, Unit: split.Runes}, changed: make(chan struct{})}, nil
}

// Kind implements platform.Platform.
func (p *Plugin) Kind() string { return "stdio" }

// Traits implements platform.Platform. The limit is that of the last hello.
func (p *Plugin) Traits() platform.Traits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return platform.Traits{Limit: p.limit}
}

func (p *Plugin) set(c *conversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = c
	close(p.changed)
	p.changed = make(chan struct{})
}

// Send implements platform.Platform. It waits for a plugin that is being started.
func (p *Plugin) Send(ctx context.Context, m platform.Outgoing) (string, error) {
	for {
		p.mu.Lock()
		c, changed := p.running, p.changed
		p.mu.Unlock()
		if c != nil {
			return c.send(ctx, m)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", fmt.Errorf("the plugin does not run: %w", context.Cause(ctx))
		}
	}
}

// Serve implements platform.Platform: it runs the process until ctx ends, or it does.
func (p *Plugin) Serve(ctx context.Context, in platform.Inbox) error {
	run, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	cmd := exec.CommandContext(run, p.cfg.Command[0], p.cfg.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.cfg.Dir, append(os.Environ(), p.cfg.Env...), time.Second
	logs := &logLines{logger: p.cfg.Logger}
	cmd.Stderr = logs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start plugin: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start plugin: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start plugin: %w", err)
	}
	c := newConversation(stdin, in)
	err = p.converse(ctx, c, stdout)
	_ = stdin.Close() // the process may be gone
	late := time.AfterFunc(stopWithin, kill)
	drained := make(chan struct{})
	go func() { // what it still says is of no use, but must not stop it
		defer close(drained)
		_, _ = io.Copy(io.Discard, stdout)
	}()
	<-drained
	ended := cmd.Wait()
	late.Stop()
	logs.flush()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the plugin ended (%w): %w", orEnded(ended), orEnded(err))
}

var errEnded = errors.New("it closed its output")

func orEnded(err error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// converse reads lines until the plugin closes its output, breaks the rules, or ctx ends.
func (p *Plugin) converse(ctx context.Context, c *conversation, stdout io.ReadCloser) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { _ = stdout.Close() }) // ends the reader
	defer stop()
	early := time.AfterFunc(helloWithin, func() { cancel(errors.New("the plugin did not say hello in time")) })
	defer early.Stop()
	lines := newLines(stdout)
	hello, err := lines.next()
	if err != nil {
		return because(ctx, err)
	}
	limit, err := limitOf(hello)
	if err != nil {
		return err
	}
	early.Stop()
	p.mu.Lock()
	p.limit = limit
	p.mu.Unlock()
	if err := c.write(toPlugin{Type: "welcome", Version: Version, Account: p.cfg.Account, Cursor: c.in.Cursor()}); err != nil {
		return err
	}
	p.set(c)
	defer p.set(nil)
	return because(ctx, c.run(ctx, lines))
}

// because prefers the cause of a context to what came of its end.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// logLines logs what a plugin writes to standard error, a line each.
type logLines struct {
	logger *slog.Logger
	rest   []byte
}

// Write implements io.Writer.
func (l *logLines) Write(b []byte) (int, error) {
	for _, c := range b {
		if c == '\n' || len(l.rest) >= 4096 {
			l.flush()
		}
		if c != '\n' {
			l.rest = append(l.rest, c)
		}
	}
	return len(b), nil
}

func (l *logLines) flush() {
	if len(l.rest) > 0 {
		l.logger.Info("plugin", "said", string(l.rest))
	}
	l.rest = l.rest[:0]
}
