package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"keryx/events"
	"keryx/internal/termtext"
)

// Colors of what is not a reply.
const (
	colorNotice = "\x1b[2m"
	colorBad    = "\x1b[31m"
	colorOther  = "\x1b[36m"
)

// typedAhead is how many typed lines may wait for the bus.
const typedAhead = 1000

// Terminal is the front for a person at a terminal. Make it with [OpenTerminal]; Close
// restores the terminal.
type Terminal struct {
	in     *Input
	inFD   int
	out    *os.File
	before *term.State
	term   *term.Terminal
	screen *screen
	keys   *keys
	menu   menu

	restoreOnce sync.Once
	restoreErr  error

	interrupts
}

// OpenTerminal puts the terminal behind in and out into raw mode. The caller closes it,
// also after a panic.
func OpenTerminal(in, out *os.File, color bool) (*Terminal, error) {
	input, err := NewInput(in)
	if err != nil {
		return nil, err
	}
	t := &Terminal{in: input, inFD: int(in.Fd()), out: out}
	t.keys = &keys{in: input, interrupt: t.ctrlC}
	t.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{t.keys, out}, "> ")
	width, height := t.size()
	if err := t.term.SetSize(width, height); err != nil {
		return nil, errors.Join(fmt.Errorf("open terminal: %w", err), input.Close())
	}
	t.term.AutoCompleteCallback = t.menu.complete
	t.screen = newScreen(t.term, width, color)
	if t.before, err = term.MakeRaw(t.inFD); err != nil {
		return nil, errors.Join(fmt.Errorf("open terminal: %w", err), input.Close())
	}
	t.term.SetBracketedPasteMode(true)
	return t, nil
}

// size returns the terminal's size; a terminal that does not know has 80 x 24.
func (t *Terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Restore puts the terminal back as it was. It is idempotent and may be called at any
// time, such as just before the process exits.
func (t *Terminal) Restore() error {
	t.restoreOnce.Do(func() {
		t.term.SetBracketedPasteMode(false)
		_, _ = t.out.WriteString("\r\x1b[K") // take the prompt away; a terminal that is gone has none
		if err := term.Restore(t.inFD, t.before); err != nil {
			t.restoreErr = fmt.Errorf("restore terminal: %w", err)
		}
	})
	return t.restoreErr
}

// Close ends Run's reading and restores the terminal.
func (t *Terminal) Close() error { return errors.Join(t.in.Close(), t.Restore()) }

// Log returns a writer for log lines, which go above the prompt.
func (t *Terminal) Log() io.Writer { return logWriter{t.screen} }

type logWriter struct{ s *screen }

// Write implements io.Writer.
func (w logWriter) Write(p []byte) (int, error) {
	w.s.line(colorNotice, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// Run reads lines and does them until Ctrl-D, Ctrl-C twice at the empty prompt, the end
// of input, or of ctx. chat.Run has to run beside it with t as its front.
func (t *Terminal) Run(ctx context.Context, chat *Chat) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = t.in.Close() }) // then the read ends
	defer stop()
	t.begin(ctx, chat, t.fault)
	typed := make(chan string, typedAhead)
	var work sync.WaitGroup
	work.Go(func() { t.worker(ctx, chat, typed) })
	work.Go(func() { t.followSize(ctx) })
	work.Go(func() { t.menu.follow(ctx, chat) })
	t.Notice(chat.Greeting())
	err := t.read(ctx, typed)
	close(typed)
	cancel()
	t.end()
	work.Wait()
	return errors.Join(err, t.screen.failure())
}

func (t *Terminal) fault(err error) { t.screen.line(colorBad, err.Error()) }

func (t *Terminal) read(ctx context.Context, typed chan<- string) error {
	for {
		line, err := t.term.ReadLine()
		switch {
		case errors.Is(err, term.ErrPasteIndicator):
		case errors.Is(err, io.EOF), errors.Is(err, ErrClosed), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("read terminal: %w", err)
		}
		select {
		case typed <- line:
		case <-ctx.Done():
			return nil
		}
	}
}

// worker does the typed lines one after the other, so that typing never blocks.
func (t *Terminal) worker(ctx context.Context, chat *Chat, typed <-chan string) {
	for line := range typed {
		if ctx.Err() != nil {
			return
		}
		if err := t.line(ctx, chat, line); err != nil && ctx.Err() == nil {
			t.fault(err)
		}
	}
}

func (t *Terminal) line(ctx context.Context, chat *Chat, line string) error {
	command, text := Parse(line)
	switch command {
	case CommandNone:
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return chat.Send(ctx, text)
	case CommandHelp:
		t.Notice(chat.Help(ctx))
	case CommandNew:
		_, err := chat.Reset(ctx)
		return err // the record tells of the new epoch
	case CommandStatus:
		status, err := chat.Status(ctx)
		if err != nil {
			return err
		}
		t.Notice(strings.TrimSuffix(status, "\n"))
	case CommandQueue:
		queue, err := chat.Queue(ctx)
		if err != nil {
			return err
		}
		t.Notice(strings.TrimSuffix(queue, "\n"))
	case CommandStop:
		busy, err := chat.Stop(ctx)
		if err != nil {
			return err
		}
		if !busy {
			t.Notice("nothing runs")
		}
	case CommandBackground, CommandJobs, CommandKill, CommandSetup:
		said, err := chat.jobCommand(ctx, command, text)
		if err != nil {
			return err
		}
		t.Notice(said)
	case CommandApprove, CommandDeny:
		_, err := chat.Answer(ctx, text, command == CommandApprove)
		return err // the record tells of the answer
	default:
		return chat.GiveAsync(ctx, text) // the record tells of the outcome
	}
	return nil
}

// followSize tells the editor of the terminal's new size.
func (t *Terminal) followSize(ctx context.Context) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		width, height := t.size()
		t.screen.resize(width)
		if err := t.term.SetSize(width, height); err != nil {
			return // the terminal is gone, which the reader will notice
		}
	}
}

// ctrlC interrupts the running turn; at the second press in a row it leaves.
func (t *Terminal) ctrlC(again bool) (leave bool) {
	if again {
		return true
	}
	if !t.Interrupt() {
		t.Notice("Ctrl-C again or Ctrl-D to leave")
	}
	return false
}

// Message implements [Front]: what others say is shown. That a job has ended is the host's
// to tell, in the turn that this begins, if there is one.
func (t *Terminal) Message(m Message) {
	if m.Kind == events.ItemJobExit && m.Hosted {
		return
	}
	if !m.Own {
		t.screen.line(colorOther, string(m.Sender)+": "+termtext.Visible(m.Text))
	}
}

// Started implements [Front].
func (t *Terminal) Started(Turn) {}

// Piece implements [Front].
func (t *Terminal) Piece(_ Turn, text string) { t.screen.reply(text) }

// Ended implements [Front].
func (t *Terminal) Ended(e Ended) {
	if e.Whole {
		t.screen.endReply()
		t.Notice("pieces of the reply were lost; this is the whole:")
	}
	t.screen.reply(e.Rest)
	t.screen.endReply()
	if e.Truncated {
		t.Notice("the middle of the reply is not on record")
	}
	if line := outcomeLine(e); line != "" {
		t.screen.line(colorBad, line)
	}
}

// Notice implements [Front].
func (t *Terminal) Notice(text string) { t.screen.line(colorNotice, text) }

// State implements [Front].
func (t *Terminal) State(s State) { t.screen.setState(s) }
