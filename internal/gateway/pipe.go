package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"keryx/events"
)

// Pipe is the front for piped input. Each line is a message; the replies to own
// messages go to Out, in order, each ending with a newline, and nothing else does. Use
// it once.
type Pipe struct {
	// In is closed when Run's context ends, so that a blocked read ends too.
	In  io.ReadCloser
	Out io.Writer // replies alone
	Err io.Writer // everything else, a line each

	interrupts
	tellMu sync.Mutex // guards Err and what follows
	outErr error      // Out cannot be written any more
	wrong  int        // lines that were not done
}

// Run does lines until the end of input and waits until all own messages have settled.
// It returns [ErrNotDone] unless each message's turn completed and each command was
// carried out; else ctx's cause, or why input, output or the chat ended early. chat.Run
// has to run beside it with p as its front.
//
// /new and /status wait until all earlier messages have settled; /stop acts at once.
func (p *Pipe) Run(ctx context.Context, chat *Chat) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = p.In.Close() }) // nothing more is read
	defer stop()
	p.begin(ctx, chat, p.fault)
	defer p.end()
	defer cancel()
	in := newLines(p.In)
	for {
		line, err := in.next()
		var bad *LineError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return p.finish(ctx, chat)
		case errors.As(err, &bad):
			p.fault(bad)
			continue
		case err != nil:
			return fmt.Errorf("read input: %w", err)
		}
		if err := p.line(ctx, chat, line); err != nil {
			return err
		}
	}
}

func (p *Pipe) finish(ctx context.Context, chat *Chat) error {
	if err := chat.Settled(ctx, 0); err != nil {
		return err
	}
	p.tellMu.Lock()
	defer p.tellMu.Unlock()
	if p.outErr == nil && (chat.Tally().Failed > 0 || p.wrong > 0) {
		return ErrNotDone
	}
	return p.outErr
}

// line does one line. What goes wrong with it alone is a fault, told and counted; an
// error ends the input.
func (p *Pipe) line(ctx context.Context, chat *Chat, line string) error {
	if err := p.broken(); err != nil {
		return err
	}
	command, text := Parse(line)
	switch command {
	case CommandNone:
		return p.send(ctx, chat, text)
	case CommandHelp:
		p.Notice(chat.Help(ctx))
	case CommandStop:
		if _, err := chat.Stop(ctx); err != nil {
			p.fault(err)
		}
	case CommandNew, CommandStatus, CommandQueue:
		if err := chat.Settled(ctx, 0); err != nil {
			return err
		}
		p.settledCommand(ctx, chat, command)
	case CommandBackground, CommandJobs, CommandKill, CommandSetup:
		said, err := chat.jobCommand(ctx, command, text)
		if err != nil {
			p.fault(err)
			break
		}
		p.Notice(said)
	case CommandApprove, CommandDeny:
		if _, err := chat.Answer(ctx, text, command == CommandApprove); err != nil {
			p.fault(err)
		}
	default:
		p.give(ctx, chat, text)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (p *Pipe) send(ctx context.Context, chat *Chat, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if err := chat.Settled(ctx, MaxInFlight-1); err != nil {
		return err
	}
	if err := chat.Send(ctx, text); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.Notice("not sent: " + err.Error()) // the tally counts it
	}
	return nil
}

func (p *Pipe) settledCommand(ctx context.Context, chat *Chat, c Command) {
	if c == CommandNew {
		if _, err := chat.Reset(ctx); err != nil {
			p.fault(err)
		}
		return // the record tells of the new epoch
	}
	tell := chat.Status
	if c == CommandQueue {
		tell = chat.Queue
	}
	status, err := tell(ctx)
	if err != nil {
		p.fault(err)
		return
	}
	p.Notice(strings.TrimSuffix(status, "\n"))
}

// give gives a slash command to its handler and waits for the outcome.
func (p *Pipe) give(ctx context.Context, chat *Chat, line string) {
	said, err := chat.Give(ctx, line)
	if err != nil {
		p.fault(err)
		return
	}
	if said != "" {
		p.Notice(said)
	}
}

// fault tells what went wrong with a line.
func (p *Pipe) fault(err error) {
	p.tellMu.Lock()
	p.wrong++
	p.tellMu.Unlock()
	p.Notice(err.Error())
}

func (p *Pipe) broken() error {
	p.tellMu.Lock()
	defer p.tellMu.Unlock()
	return p.outErr
}

// Ended implements [Front]: replies to own messages go out.
func (p *Pipe) Ended(e Ended) {
	if line := outcomeLine(e); line != "" && (e.Own || e.Late) {
		p.Notice(line)
	}
	if !e.Own || e.Reply == "" {
		return
	}
	reply := e.Reply
	if !strings.HasSuffix(reply, "\n") {
		reply += "\n"
	}
	if e.Truncated {
		p.Notice("the reply was too long; its middle is not on record")
	}
	if _, err := io.WriteString(p.Out, reply); err != nil {
		p.tellMu.Lock()
		p.outErr = fmt.Errorf("write reply: %w", err)
		p.tellMu.Unlock()
	}
}

// Notice implements [Front].
func (p *Pipe) Notice(text string) {
	p.tellMu.Lock()
	defer p.tellMu.Unlock()
	// Where notices cannot be written there is nowhere left to say so.
	_, _ = io.WriteString(p.Err, text+"\n")
}

// Message implements [Front]: the sender knows what it said, and what the bus says of jobs
// is told.
func (p *Pipe) Message(m Message) {
	if m.Kind == events.ItemJobExit {
		p.Notice(m.Text)
	}
}

// Started implements [Front].
func (p *Pipe) Started(Turn) {}

// Piece implements [Front]: a pipe gets whole replies.
func (p *Pipe) Piece(Turn, string) {}

// State implements [Front].
func (p *Pipe) State(State) {}
