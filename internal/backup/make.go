package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

const (
	// markWait is how long a backup waits for the high-water mark of a running bus, which
	// follows the log each second.
	markWait = 10 * time.Second
	markPoll = 50 * time.Millisecond
	// tries is how often a backup begins again when the server takes a block away
	// meanwhile, as retention does.
	tries = 5
)

// ErrBehind means that the high-water mark of a running bus does not follow its log.
var ErrBehind = errors.New("the high-water mark does not follow the log; see the bus's own log, and whether its disk is full")

// Options say what goes into a backup.
type Options struct {
	// NoOutput leaves the output of execs out, which may be the larger part.
	NoOutput bool
	// Progress is told what is done now; nil for nobody.
	Progress func(string)
	// Now is the time of the backup.
	Now time.Time
}

// Make backs the bus directory dir up into a new directory. A bus may serve dir; if none
// does, none can begin before Make returns. What was copied of a backup that fails is
// removed.
func Make(ctx context.Context, dir, to string, o Options) (Manifest, error) {
	m := Manifest{Format: storefile.Format, Made: o.Now.UTC().Truncate(time.Second)}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	unlock, err := broker.Hold(ctx, dir)
	var held *broker.HeldError
	m.Running = errors.As(err, &held)
	if err != nil && !m.Running {
		return m, err
	}
	if err == nil {
		defer func() { _ = unlock() }() // the process ends soon, and the lock with it
	}
	if err := storefile.CheckFormat(dir); err != nil {
		return m, err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return m, fmt.Errorf("make backup: %w", err)
	}
	if err := m.fill(ctx, dir, to, o); err != nil {
		return m, errors.Join(fmt.Errorf("back up %s: %w", dir, err), os.RemoveAll(to))
	}
	return m, nil
}

func (m *Manifest) fill(ctx context.Context, dir, to string, o Options) error {
	o.Progress("wait for the log")
	mark, err := m.settle(ctx, dir)
	if err != nil {
		return err
	}
	m.Last, m.Created, m.Generation = mark.Last, mark.Created, mark.Generation
	for _, stream := range streams(o) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o.Progress("copy " + stream)
		c, err := copyStream(dir, stream, to, mark.Last)
		if errors.Is(err, errNoStream) {
			continue
		}
		if err != nil {
			return err
		}
		m.Streams = append(m.Streams, c)
	}
	if err := copyBeside(dir, to); err != nil {
		return err
	}
	o.Progress("compute checksums")
	if err := m.list(to); err != nil {
		return err
	}
	return m.write(to)
}

// streams in the order in which they are copied: what the log speaks of is there when it
// was copied before.
func streams(o Options) []string {
	out := []string{events.StreamLog, events.StreamImport, events.StreamDead, leaseStream}
	if !o.NoOutput {
		out = append(out, events.StreamOut)
	}
	return out
}

const leaseStream = "KV_" + events.BucketLeases

// settle waits until the mark names all that was in the files when it was called.
func (m *Manifest) settle(ctx context.Context, dir string) (sessionlog.Mark, error) {
	r, err := storefile.Scan(ctx, dir, events.StreamLog)
	if err != nil {
		return sessionlog.Mark{}, err
	}
	if !r.Exists {
		return sessionlog.Mark{}, errNoStream
	}
	ctx, cancel := context.WithTimeoutCause(ctx, markWait, ErrBehind)
	defer cancel()
	poll := time.NewTicker(markPoll)
	defer poll.Stop()
	for {
		mark, err := sessionlog.ReadMark(dir)
		if err != nil || mark.Last >= r.Last {
			return mark, err
		}
		if !m.Running { // what a killed bus had not noted is whole, or was cut off with the torn record
			mark.Last = r.Last
			return mark, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return mark, context.Cause(ctx)
		}
	}
}

var errNoStream = errors.New("there is no store in it")

func copyStream(dir, stream, to string, last events.Sequence) (c storefile.Copied, err error) {
	if stream != events.StreamLog {
		last = 0
	}
	for range tries {
		at := filepath.Join(dir, filepath.FromSlash(storefile.StreamDir(stream)))
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			return c, errNoStream
		}
		c, err = storefile.Copy(dir, stream, to, last)
		if !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
		if err := os.RemoveAll(filepath.Join(to, filepath.FromSlash(storefile.StreamDir(stream)))); err != nil {
			return c, fmt.Errorf("begin stream %s again: %w", stream, err)
		}
	}
	return c, err
}

// copyBeside copies what is beside the store: who may connect, and the digests of secrets
// to hide.
func copyBeside(dir, to string) error {
	for _, name := range []string{"principals.yaml", "secrets.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		if err := storefile.Write(filepath.Join(to, name), b); err != nil {
			return err
		}
	}
	return nil
}
