package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

// followReceipt prints a receipt, once it has reached the state that is waited for.
func (g *global) followReceipt(ctx context.Context, cmd *cobra.Command, c *client.Conn, r events.Receipt, want events.ItemState) error {
	if want == "" {
		return g.printReceipt(cmd.OutOrStdout(), r)
	}
	arrived := func(now events.Receipt) bool { return reached(now, want) || stuck(now) }
	if g.bus.Offline() && !arrived(r) {
		return g.bus.NotRunning(fmt.Sprintf("message %s stays %s; start one with 'bus up' or 'bus serve'", r.ID, standing(r)))
	}
	w := watch(ctx, cmd, c, r)
	r, err := c.WaitReceipt(ctx, r.ID, func(now events.Receipt) bool {
		w.show(now)
		return arrived(now)
	})
	w.stop()
	if err != nil {
		// What goes wrong with this line goes wrong with the error that is returned too.
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "message %s is %s; to ask again: %s\n", r.ID, standing(r), g.askAgain(cmd, r.ID, want))
		return fmt.Errorf("wait for %s: %w", r.ID, err)
	}
	if err := g.printReceipt(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	return g.judge(ctx, cmd, c, r, want)
}

// askAgain is the command that waits on, to be typed into a shell.
func (g *global) askAgain(cmd *cobra.Command, id events.ReceiptID, want events.ItemState) string {
	words := []string{"bus", "receipt", string(id), "--wait", string(want)}
	for _, name := range []string{"dir", "url", "creds", "profile"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			words = append(words, "--"+name, quoted(f.Value.String()))
		}
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// whyAfter is how long a message may stand still before the reason is asked for, and how
// often it is asked for then.
const whyAfter = 2 * time.Second

// watcher shows where an item stands while a command waits for it: on a terminal with the
// time that has passed, and with the reason when it does not move.
type watcher struct {
	conn    *client.Conn
	session events.SessionID
	begun   time.Time
	ticking bool // on a terminal
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu    sync.Mutex
	line  *cli.Progress
	now   events.Receipt
	past  pastness
	moved time.Time
	why   string
}

// pastness is which of the states that are told are news.
type pastness int

const (
	nothingTold pastness = iota
	pastIsTold           // the item's history comes, up to the state that was told first
	presentIsTold
)

// watch begins to show; stop must be called.
func watch(ctx context.Context, cmd *cobra.Command, c *client.Conn, r events.Receipt) *watcher {
	w := &watcher{
		conn: c, session: r.Session, begun: time.Now(), now: r, moved: time.Now(),
		line: cli.NewProgress(cmd.ErrOrStderr()), ticking: cli.IsTerminal(cmd.ErrOrStderr()),
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.done.Go(func() { w.tick(ctx) })
	return w
}

func (w *watcher) stop() {
	w.cancel()
	w.done.Wait()
	w.line.Done()
}

func (w *watcher) show(now events.Receipt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch same := now == w.now; {
	case w.past == nothingTold:
		w.past = pastIsTold
	case w.past == pastIsTold && !same:
		return
	default:
		w.past = presentIsTold
	}
	if now != w.now {
		w.now, w.moved, w.why = now, time.Now(), ""
	}
	w.drawLocked()
}

func (w *watcher) drawLocked() {
	text := string(w.now.ID) + " " + standing(w.now)
	if w.why != "" {
		text += "; the session waits for " + w.why
	}
	if w.ticking {
		text += fmt.Sprintf(" (%s)", time.Since(w.begun).Round(time.Second))
	}
	w.line.Show(text)
}

// tick draws each second and asks now and then why nothing moves.
func (w *watcher) tick(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	asked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
		}
		w.mu.Lock()
		still := w.now.State == events.StateQueued && time.Since(w.moved) >= whyAfter
		w.drawLocked()
		w.mu.Unlock()
		if still && time.Since(asked) >= whyAfter {
			asked = time.Now()
			w.ask(ctx)
		}
	}
}

func (w *watcher) ask(ctx context.Context) {
	v, err := w.conn.Show(ctx, string(w.session))
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			v.WaitingFor = "something that could not be asked for: " + err.Error()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now.State == events.StateQueued {
		w.why = why(v, time.Now())
		w.drawLocked()
	}
}
