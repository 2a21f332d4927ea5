package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"keryx/internal/broker"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

// lowSpace is below what a warning is given; the bus itself takes nothing new below 8 MiB.
const lowSpace = 256 << 20

// Examine looks a bus directory over. The returned function gives the directory free, and
// must be called after a repair.
func Examine(ctx context.Context, dir string) (Report, func() error, error) {
	r := Report{Dir: dir}
	release, err := broker.Hold(ctx, dir)
	var held *broker.HeldError
	switch {
	case errors.As(err, &held):
		r.Running = true
		release = func() error { return nil }
		r.add(Finding{Check: "lock", Severity: Note, What: held.Error(), Do: "stop the bus to have its store read"})
	case err != nil:
		return r, nil, err
	default:
		r.add(Finding{Check: "lock", Severity: Fine, What: "no bus runs here"})
	}
	r.format()
	r.space()
	r.modes()
	if r.Running {
		return r, release, nil
	}
	r.leftovers()
	if err := r.store(ctx); err != nil {
		return r, nil, errors.Join(err, release())
	}
	return r, release, nil
}

func (r *Report) format() {
	b, err := os.ReadFile(filepath.Join(r.Dir, "format.json"))
	if errors.Is(err, fs.ErrNotExist) {
		r.add(Finding{Check: "format", Severity: Note, What: "the directory does not say its format; the next start writes it"})
		return
	}
	if err == nil {
		err = storefile.CheckFormat(r.Dir)
	}
	if err != nil {
		r.add(Finding{Check: "format", Severity: Fault, What: err.Error(), Do: "use the bus that wrote it, or restore a backup"})
		return
	}
	r.add(Finding{Check: "format", Severity: Fine, What: "the format is " + strings.TrimSpace(string(b))})
}

func (r *Report) space() {
	var s unix.Statfs_t
	if err := unix.Statfs(r.Dir, &s); err != nil {
		r.add(Finding{Check: "space", Severity: Warning, What: fmt.Sprintf("the filesystem does not say what is free: %v", err)})
		return
	}
	free := uint64(s.Bavail) * uint64(s.Bsize) //nolint:gosec // neither is negative
	f := Finding{Check: "space", Severity: Fine, What: fmt.Sprintf("%d MiB are free", free>>20)}
	if free < lowSpace {
		f.Severity, f.Do = Warning, "make room: below 8 MiB the bus takes nothing new"
	}
	r.add(f)
}

// modes looks for files that others can read or write.
func (r *Report) modes() {
	bad := 0
	for _, name := range []string{".", "principals.yaml", "secrets.json", "high-water.json", "store", "run"} {
		path := filepath.Join(r.Dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			r.add(Finding{Check: "modes", Severity: Warning, What: err.Error()})
			bad++
			continue
		}
		open := info.Mode().Perm() & 0o022
		if name != "store" { // the server's own directories are below a closed one
			open = info.Mode().Perm() & 0o077
		}
		if open != 0 {
			bad++
			r.add(Finding{Check: "modes", Severity: Warning, What: fmt.Sprintf("%s has mode %04o: others can use it", path, info.Mode().Perm()), Do: "chmod go= " + path})
		}
	}
	if bad == 0 {
		r.add(Finding{Check: "modes", Severity: Fine, What: "no file is open to others"})
	}
}

// leftovers are what a killed process leaves: run files of nobody, halves of replaced files.
func (r *Report) leftovers() {
	var left []string
	for _, pattern := range []string{"run/pid", "run/url", "run/http", "run/operator.sock", "*.tmp", ".keryx-*", "store/jetstream/$G/streams/*/msgs/*.cut"} {
		found, err := filepath.Glob(filepath.Join(r.Dir, filepath.FromSlash(pattern)))
		if err == nil { // the patterns are good
			left = append(left, found...)
		}
	}
	if len(left) > 0 {
		r.add(Finding{
			Check: "leftovers", Severity: Note, What: "a killed process left " + strings.Join(left, ", "),
			Do: "nothing: they do no harm", Repair: "remove " + strings.Join(left, ", "),
			repair: func() error { return removeAll(left) },
		})
	}
	kept, err := filepath.Glob(filepath.Join(r.Dir, "damaged", "*"))
	if err == nil && len(kept) > 0 {
		r.add(Finding{
			Check: "damaged", Severity: Note, What: fmt.Sprintf("%d files as they were before damage was taken out are in %s", len(kept), filepath.Join(r.Dir, "damaged")),
			Do: "remove them when nothing more is to be found in them",
		})
	}
	if len(left) == 0 && len(kept) == 0 {
		r.add(Finding{Check: "leftovers", Severity: Fine, What: "nothing was left behind"})
	}
}

func removeAll(paths []string) error {
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("remove what was left: %w", err)
		}
	}
	return nil
}

// store reads every stream and holds the log against its mark.
func (r *Report) store(ctx context.Context) error {
	names, err := storefile.Streams(r.Dir)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		r.add(Finding{Check: "store", Severity: Note, What: "there is no store yet"})
		return nil
	}
	for _, name := range names {
		s, err := storefile.Scan(ctx, r.Dir, name)
		if err != nil {
			return err
		}
		r.Streams = append(r.Streams, s)
		r.stream(s)
	}
	r.mark()
	return r.content()
}

func (r *Report) stream(s storefile.Report) {
	projection := isProjection(s.Stream)
	for _, d := range s.Damages {
		f := Finding{Check: "damage", Severity: Fault, What: d.String(), Do: "restore a backup, or start with --accept-loss, which keeps the files as they are and records the loss"}
		if projection {
			f.Severity, f.Do = Warning, "the next start repairs it"
		}
		r.add(f)
	}
	if s.Torn != nil {
		r.add(Finding{Check: "torn", Severity: Note, What: s.Torn.String() + ": it was being written when the bus was killed and never answered", Do: "nothing: the next start cuts it off"})
	}
	if len(s.Damages) == 0 {
		r.add(Finding{Check: "store", Severity: Fine, What: fmt.Sprintf("stream %s: %d messages in %d blocks match their checksums, up to sequence %s", s.Stream, s.Messages, s.Blocks, s.Last)})
	}
	if !s.Index && s.Blocks > 0 {
		r.add(Finding{Check: "index", Severity: Note, What: "stream " + s.Stream + " has no index", Do: "nothing: the next start makes it again from the blocks"})
	}
	if s.Index {
		r.index(s.Stream)
	}
	r.consumers(s.Stream)
}

// index offers to have an index, or a whole projection, made again.
func (r *Report) index(stream string) {
	f := Finding{Check: "index", Severity: Fine, What: "stream " + stream + " has an index"}
	if isProjection(stream) {
		f.Repair = "set stream " + stream + " aside, which is made again from the log"
		f.repair = func() error {
			_, err := storefile.SetAside(r.Dir, stream, time.Now())
			return err
		}
	} else {
		f.Repair = "remove the index of stream " + stream + ", which is made again from its blocks"
		f.repair = func() error { return storefile.DropIndex(r.Dir, stream) }
	}
	r.add(f)
}

// consumers finds what no bus makes: every reading is a direct get.
func (r *Report) consumers(stream string) {
	entries, err := os.ReadDir(filepath.Join(r.Dir, filepath.FromSlash(storefile.StreamDir(stream)), "obs"))
	if err != nil || len(entries) == 0 {
		return
	}
	r.add(Finding{
		Check: "consumers", Severity: Warning, What: fmt.Sprintf("stream %s has %d consumers, and the bus makes none", stream, len(entries)),
		Do: "find out who opened the store with another program",
	})
}

// mark compares what the log holds with what it once held.
func (r *Report) mark() {
	log := r.log()
	m, err := sessionlog.ReadMark(r.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.add(Finding{Check: "high-water", Severity: Warning, What: "there is no high-water mark: what the store once held is not known", Do: "the next start takes the store as it is"})
	case err != nil:
		r.add(Finding{Check: "high-water", Severity: Fault, What: err.Error()})
	case log.Last < m.Last:
		r.add(Finding{
			Check: "high-water", Severity: Fault, What: fmt.Sprintf("the log ends at sequence %s and once held %s", log.Last, m.Last),
			Do: "restore a backup, or start with --accept-loss",
		})
	case m.Missing(log.Last, log.Messages) > 0:
		r.add(Finding{
			Check: "high-water", Severity: Fault, What: fmt.Sprintf("%d messages that the log once held are gone", m.Missing(log.Last, log.Messages)),
			Do: "restore a backup, or start with --accept-loss",
		})
	default:
		r.add(Finding{Check: "high-water", Severity: Fine, What: fmt.Sprintf("the log holds what it once held, up to sequence %s, generation %d", log.Last, m.Generation)})
	}
}
