package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/gateway/platform"
)

// lines reads the lines of a plugin.
type lines struct{ scanner *bufio.Scanner }

func newLines(r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(nil, lineMost)
	return &lines{s}
}

// next returns the next line; io.EOF when there is none.
func (l *lines) next() (fromPlugin, error) {
	for l.scanner.Scan() {
		if b := l.scanner.Bytes(); len(b) > 0 {
			return readLine(b)
		}
	}
	if err := l.scanner.Err(); err != nil {
		return fromPlugin{}, fmt.Errorf("read the plugin: %w", err)
	}
	return fromPlugin{}, io.EOF
}

// conversation is one run of a plugin.
type conversation struct {
	in platform.Inbox

	writing sync.Mutex
	out     io.Writer

	mu    sync.Mutex
	sends map[string]chan fromPlugin
	queue []fromPlugin  // messages that were not taken yet
	more  chan struct{} // size 1: there is something in the queue
	over  chan struct{} // closed when it has ended
}

func newConversation(out io.Writer, in platform.Inbox) *conversation {
	return &conversation{
		in: in, out: out, sends: make(map[string]chan fromPlugin), more: make(chan struct{}, 1), over: make(chan struct{}),
	}
}

func (c *conversation) write(l toPlugin) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write to the plugin: %w", err)
	}
	return nil
}

// run reads until the end. Messages are taken one after another, beside the reading: an
// answer to a send must not wait for them.
func (c *conversation) run(ctx context.Context, in *lines) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var taking sync.WaitGroup
	taking.Go(func() {
		if err := c.take(ctx); err != nil {
			cancel(err)
		}
	})
	err := c.read(in)
	cancel(err)
	taking.Wait()
	close(c.over)
	return err
}

func (c *conversation) read(in *lines) error {
	for {
		l, err := in.next()
		if err != nil {
			return err
		}
		switch l.Type {
		case "message", "gap":
			if err := c.enqueue(l); err != nil {
				return err
			}
		case "sent", "later", "failed":
			c.answer(l)
		default:
			return fmt.Errorf("the plugin says %q, which is no line of version %d", l.Type, Version)
		}
	}
}

func (c *conversation) enqueue(l fromPlugin) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) >= waitingMost {
		return fmt.Errorf("the plugin sent more than %d messages without waiting for an answer", waitingMost)
	}
	c.queue = append(c.queue, l)
	select {
	case c.more <- struct{}{}:
	default:
	}
	return nil
}

func (c *conversation) dequeue(ctx context.Context) (fromPlugin, bool) {
	for {
		c.mu.Lock()
		if len(c.queue) > 0 {
			l := c.queue[0]
			c.queue = c.queue[1:]
			c.mu.Unlock()
			return l, true
		}
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-ctx.Done():
			return fromPlugin{}, false
		}
	}
}

// take takes messages in, in order, and answers each.
func (c *conversation) take(ctx context.Context) error {
	for {
		l, ok := c.dequeue(ctx)
		if !ok {
			return nil
		}
		answer := c.receive(ctx, l)
		if ctx.Err() != nil {
			return nil
		}
		if err := c.write(answer); err != nil {
			return err
		}
	}
}

func (c *conversation) receive(ctx context.Context, l fromPlugin) toPlugin {
	answer := toPlugin{Type: "taken", ID: l.ID, Chat: l.Chat, Thread: l.Thread}
	var taken platform.Taken
	var err error
	if l.Type == "gap" {
		err = c.in.Missed(ctx, platform.Gap{Place: events.Place{Chat: l.Chat, Thread: l.Thread}, From: l.From, To: l.To, Reason: l.Error})
	} else {
		taken, err = c.in.Receive(ctx, incoming(l))
	}
	if err != nil {
		info, known := events.Lookup(events.CodeOf(err))
		answer.Type, answer.Code, answer.Error = "refused", events.CodeOf(err), err.Error()
		answer.Retry = info.Retryable || !known
		return answer
	}
	answer.Session, answer.Receipt = taken.Session, taken.Receipt
	answer.Duplicate, answer.Echo, answer.Command = taken.Duplicate, taken.Echo, taken.Command
	return answer
}

func (c *conversation) answer(l fromPlugin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got, ok := c.sends[l.ID]; ok { // else it comes too late, or again
		delete(c.sends, l.ID)
		got <- l
	}
}

func (c *conversation) send(ctx context.Context, m platform.Outgoing) (string, error) {
	got := make(chan fromPlugin, 1)
	c.mu.Lock()
	c.sends[m.ID] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.sends[m.ID] == got {
			delete(c.sends, m.ID)
		}
	}()
	if err := c.write(outgoing(m)); err != nil {
		return "", err
	}
	select {
	case l := <-got:
		return result(l)
	case <-c.over:
		return "", errors.New("the plugin ended before it answered")
	case <-ctx.Done():
		return "", fmt.Errorf("the plugin did not answer: %w", context.Cause(ctx))
	}
}

func result(l fromPlugin) (string, error) {
	why := errors.New(l.Error)
	if l.Error == "" {
		why = errors.New("the plugin says " + l.Type)
	}
	switch {
	case l.Type == "sent":
		return l.Message, nil
	case l.Type == "later":
		return "", &platform.LaterError{After: time.Duration(l.AfterMS) * time.Millisecond, Err: why}
	case l.Final:
		return "", &platform.FinalError{Err: why}
	}
	return "", why
}
