package main

import (
	"bytes"
	"fmt"
	"io"
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

// keyboard brings keys and the size of this terminal to the terminal of an exec. Without
// a terminal here, or there, it does nothing.
type keyboard struct {
	cmd   *cobra.Command
	conn  *client.Conn
	start events.StartExec
	log   io.Writer
	// mute keeps keys and size here; detach, if set, is called for the detach key.
	mute   bool
	detach func()

	exec    events.ExecID
	in      *os.File
	before  *term.State
	resized chan os.Signal
	wg      sync.WaitGroup
	once    sync.Once
}

// open begins once the exec has an id.
func (k *keyboard) open(a events.ExecAnswer) {
	in, ok := k.cmd.InOrStdin().(*os.File)
	if !ok || k.start.Spec.PTY == nil || !cli.IsTerminal(in) {
		return
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		fmt.Fprintln(k.log, "keys are not sent:", err)
		return
	}
	k.exec, k.in, k.before = a.Exec, in, before
	k.resized = make(chan os.Signal, 1)
	signal.Notify(k.resized, unix.SIGWINCH)
	k.wg.Go(k.follow)
	// It ends with the process at the latest: a read of a terminal cannot be broken off.
	go k.keys()
}

// close gives the terminal back as it was.
func (k *keyboard) close() {
	k.once.Do(func() {
		if k.before == nil {
			return
		}
		signal.Stop(k.resized)
		close(k.resized)
		k.wg.Wait()
		if err := term.Restore(int(k.in.Fd()), k.before); err != nil {
			fmt.Fprintln(k.log, "restore the terminal:", err)
		}
	})
}

func (k *keyboard) follow() {
	for range k.resized {
		k.size()
	}
}

// size sends the size of this terminal.
func (k *keyboard) size() {
	if rows, cols, ok := cli.Size(k.cmd.OutOrStdout()); ok && k.before != nil {
		k.send(events.TTYFrame{Resize: &events.PTYSize{Rows: rows, Cols: cols}})
	}
}

// detachKey is Ctrl-].
const detachKey = 0x1d

func (k *keyboard) keys() {
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
	if k.mute {
		return
	}
	f.AccessEpoch = k.start.Selection.AccessEpoch
	if err := k.conn.Type(k.start.Selection.Executor, k.start.Session, k.exec, f); err != nil {
		fmt.Fprintf(k.log, "%v\r\n", err)
	}
}
