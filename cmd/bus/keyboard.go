package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"keryx/client"
	"keryx/events"
	"keryx/internal/cli"
)

// keyboard brings keys and the size of this terminal to the terminal of an exec, and tells
// what was not taken. Without a terminal here, or there, it does nothing.
type keyboard struct {
	cmd   *cobra.Command
	conn  *client.Conn
	start events.StartExec
	notes *notes
	// mute keeps keys and size here; detach, if set, is called for the detach key.
	mute   bool
	detach func()

	keys    *client.Keys
	in      *os.File
	before  *term.State
	resized chan os.Signal
	wg      sync.WaitGroup
	once    sync.Once

	lostMu sync.Mutex
	lost   bool // another has control now
	sent   uint64
}

// open begins once the exec has an id.
func (k *keyboard) open(a events.ExecAnswer) {
	in, ok := k.cmd.InOrStdin().(*os.File)
	if !ok || k.start.Spec.PTY == nil || !cli.IsTerminal(in) {
		return
	}
	keys, err := k.conn.OpenKeys(k.start.Selection.Executor, k.start.Session, a.Exec, k.answered)
	if err != nil {
		k.notes.say("keys are not sent: %v", err)
		return
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		k.notes.say("keys are not sent: %v", errors.Join(err, keys.Close()))
		return
	}
	k.keys, k.in, k.before = keys, in, before
	k.notes.raw()
	k.resized = make(chan os.Signal, 1)
	signal.Notify(k.resized, unix.SIGWINCH)
	k.wg.Go(k.follow)
	// It ends with the process at the latest: a read of a terminal cannot be broken off.
	go k.read()
}

// close gives the terminal back as it was.
func (k *keyboard) close() {
	k.once.Do(func() {
		defer k.notes.close()
		if k.before == nil {
			return
		}
		signal.Stop(k.resized)
		close(k.resized)
		k.wg.Wait()
		if err := errors.Join(term.Restore(int(k.in.Fd()), k.before), k.keys.Close()); err != nil {
			k.notes.say("restore the terminal: %v", err)
		}
	})
}

func (k *keyboard) follow() {
	for range k.resized {
		k.size()
	}
}

// size sends the size of this terminal: whoever types decides on it.
func (k *keyboard) size() {
	if rows, cols, ok := cli.Size(k.cmd.OutOrStdout()); ok && k.before != nil {
		k.send(events.TTYFrame{Resize: &events.PTYSize{Rows: rows, Cols: cols}})
	}
}

// detachKey is Ctrl-].
const detachKey = 0x1d

func (k *keyboard) read() {
	buf := make([]byte, 4096)
	for {
		n, err := k.in.Read(buf)
		typed, _, detached := bytes.Cut(buf[:n], []byte{detachKey})
		if k.detach == nil {
			typed, detached = buf[:n], false
		}
		if len(typed) > 0 {
			k.send(events.TTYFrame{Data: typed})
		}
		if detached {
			k.detach()
			return
		}
		if err != nil {
			return
		}
	}
}

func (k *keyboard) send(f events.TTYFrame) {
	k.lostMu.Lock()
	defer k.lostMu.Unlock()
	if k.mute || k.lost {
		return
	}
	k.sent++
	f.AccessEpoch = k.start.Selection.AccessEpoch
	if err := k.keys.Send(k.sent, f); err != nil {
		k.notes.say("%v", err)
	}
}

// answered hears what the terminal took.
func (k *keyboard) answered(_ uint64, a events.TTYAnswer) {
	switch {
	case a.Error == nil || a.Error.Code == events.CodeAlreadyEnded:
	case a.Error.Code == events.CodeStaleSelection:
		k.lose(a.Error.Details["controller"])
	default:
		k.notes.left(a)
	}
}

// lose stops the sending of keys, and says so once.
func (k *keyboard) lose(to string) {
	k.lostMu.Lock()
	defer k.lostMu.Unlock()
	if k.lost || k.mute {
		return
	}
	k.lost = true
	who := "somebody else"
	if to != "" {
		who = to
	}
	leave := ""
	if k.detach != nil {
		leave = "; Ctrl-] detaches, and 'bus attach --take-over' takes it back"
	}
	k.notes.say("%s took control of target %s: keys are not sent any more%s", who, k.start.Selection.Target, leave)
}

// watch hears of take-overs until ctx ends; since is a sequence of the profile's record
// before the selection that this keyboard types under.
func (k *keyboard) watch(ctx context.Context, since events.Sequence) {
	cfg := client.FollowConfig{Scopes: []events.Scope{events.ScopeProfile}, From: since + 1, Types: []string{"target.control_changed"}}
	for rec, err := range k.conn.Follow(ctx, cfg) {
		if err != nil {
			continue // what was missed shows in the answer to the next key
		}
		d, err := events.DataOf[events.TargetControlChanged](rec)
		if err != nil || d.Name != k.start.Selection.Target || d.AccessEpoch <= k.start.Selection.AccessEpoch {
			continue
		}
		k.lose(string(d.To))
		return
	}
}
