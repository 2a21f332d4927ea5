package sessionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"keryx/events"
)

const (
	highWaterFile = "high-water.json"
	// highWaterEvery is how often the file follows the log (design section 5).
	highWaterEvery = time.Second
)

// mark is the content of the high-water file.
type mark struct {
	Created    time.Time       `json:"stream_created"`
	Last       events.Sequence `json:"last_sequence"`
	Generation uint64          `json:"generation"`
}

// RegressedError means that the store holds less than it once did: numbers would be
// given out again.
type RegressedError struct {
	Dir             string
	HighWater, Last events.Sequence
	Remade          bool // the stream itself is another one
}

// Error implements error; it says what can be done.
func (e *RegressedError) Error() string {
	what := fmt.Sprintf("it ends at sequence %d and once held %d", e.Last, e.HighWater)
	if e.Remade {
		what = fmt.Sprintf("its log was made anew; the former one held sequence %d", e.HighWater)
	}
	return fmt.Sprintf("%s: the store in %s has lost messages: %s. Restore a backup, or serve what is left with --accept-loss, which is recorded",
		events.CodeStoreRegressed, e.Dir, what)
}

// HighWater keeps the highest sequence of the log in a file. Note is safe for
// concurrent use.
type HighWater struct {
	path    string
	created time.Time
	gen     uint64
	last    atomic.Uint64
	saved   uint64 // belongs to the goroutine of Run, or to the opener before it
	logger  *slog.Logger
}

// OpenHighWater compares a store with its high-water file and returns the mark to go on
// from, or *[RegressedError]. A store without a file gets one; that such a store was not
// empty is logged, because nothing tells then what it once held.
func OpenHighWater(dir string, created time.Time, last events.Sequence) (*HighWater, error) {
	m, err := readMark(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if last > 0 {
			slog.Warn("a store without a high-water mark: taken as it is", "dir", dir, "last", last)
		}
		return newHighWater(dir, mark{Created: created, Last: last, Generation: 1})
	}
	if err != nil {
		return nil, err
	}
	if remade := !m.Created.Equal(created); last < m.Last || remade {
		return nil, &RegressedError{Dir: dir, HighWater: m.Last, Last: last, Remade: remade}
	}
	m.Last = last
	return newHighWater(dir, m)
}

// AcceptLoss takes a regressed store as it is and raises its generation, so that no
// fence given before the loss is taken for one given after it.
func AcceptLoss(dir string, created time.Time, last events.Sequence) (*HighWater, error) {
	m, err := readMark(dir)
	if err != nil {
		return nil, err
	}
	return newHighWater(dir, mark{Created: created, Last: last, Generation: m.Generation + 1})
}

func readMark(dir string) (mark, error) {
	var m mark
	b, err := os.ReadFile(filepath.Join(dir, highWaterFile))
	if err != nil {
		return m, fmt.Errorf("read high-water mark: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("read high-water mark %s, which a backup may have whole: %w", filepath.Join(dir, highWaterFile), err)
	}
	if m.Generation == 0 {
		return m, fmt.Errorf("read high-water mark %s: it names no generation; restore it from a backup", filepath.Join(dir, highWaterFile))
	}
	return m, nil
}

func newHighWater(dir string, m mark) (*HighWater, error) {
	h := &HighWater{path: filepath.Join(dir, highWaterFile), created: m.Created, gen: m.Generation, logger: slog.Default()}
	h.last.Store(uint64(m.Last))
	return h, h.save()
}

// Generation of the store, from 1; it rises when a loss is accepted.
func (h *HighWater) Generation() uint64 { return h.gen }

// Note tells that the log has reached a sequence.
func (h *HighWater) Note(seq events.Sequence) {
	for {
		cur := h.last.Load()
		if uint64(seq) <= cur || h.last.CompareAndSwap(cur, uint64(seq)) {
			return
		}
	}
}

// Run keeps the file up to date until ctx ends, and once more then.
func (h *HighWater) Run(ctx context.Context) {
	tick := time.NewTicker(highWaterEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if h.last.Load() != h.saved {
			if err := h.save(); err != nil {
				h.logger.Error("keep the high-water mark", "error", err)
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// save replaces the file, so that a kill leaves the old or the new one.
func (h *HighWater) save() error {
	m := mark{Created: h.created, Last: events.Sequence(h.last.Load()), Generation: h.gen}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode high-water mark: %w", err)
	}
	if err := replaceFile(h.path, append(b, '\n')); err != nil {
		return fmt.Errorf("write high-water mark: %w", err)
	}
	h.saved = uint64(m.Last)
	return nil
}

// replaceFile writes path anew so that after a crash of process or machine it has the
// old content or the new. Its temporary file has a fixed name: the directory has one
// user at a time, and what a kill leaves is written over.
func replaceFile(path string, b []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(b)
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
