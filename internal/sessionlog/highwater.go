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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"keryx/events"
)

const (
	highWaterFile = "high-water.json"
	// highWaterEvery is how often the file follows the log (design section 5).
	highWaterEvery = time.Second
)

// Mark is the content of the high-water file: what the log once held.
type Mark struct {
	Created    time.Time       `json:"stream_created"`
	Last       events.Sequence `json:"last_sequence"`
	Generation uint64          `json:"generation"`
	// Messages is how many messages there were when the last sequence was Last; nil in a
	// file of a bus that did not count.
	Messages *uint64 `json:"messages,omitempty"`
	// Purging says that messages were being removed on purpose, so that Messages may be
	// more than what is there.
	Purging bool `json:"purging,omitempty"`
}

// expected returns how many messages a log has that is at last; false if that is not known.
func (m Mark) expected(last events.Sequence) (uint64, bool) {
	if m.Messages == nil || m.Purging || last < m.Last {
		return 0, false
	}
	return *m.Messages + uint64(last-m.Last), true
}

// Missing returns how many messages are gone of a log that is at last and has messages; 0
// also if that is not known.
func (m Mark) Missing(last events.Sequence, messages uint64) uint64 {
	if want, ok := m.expected(last); ok && messages < want {
		return want - messages
	}
	return 0
}

// RegressedError means that the store holds less than it once did: numbers would be
// given out again.
type RegressedError struct {
	Dir             string
	HighWater, Last events.Sequence
	Remade          bool // the stream itself is another one
	// Missing is how many messages fewer there are than there were, below Last.
	Missing uint64
}

// Error implements error; it says what can be done.
func (e *RegressedError) Error() string {
	what := fmt.Sprintf("it ends at sequence %d and once held %d", e.Last, e.HighWater)
	if e.Missing > 0 {
		what = fmt.Sprintf("%d messages at or below sequence %d are not there any more", e.Missing, e.Last)
	}
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
	logger  *slog.Logger

	mu     sync.Mutex // over what follows, and over writing the file
	saved  Mark
	base   State // the log when its messages were last counted
	purges int   // under way
}

// OpenHighWater compares a log with its high-water file and returns the mark to go on
// from, or *[RegressedError]. A store without a file gets one; that such a store was not
// empty is logged, because nothing tells then what it once held. On a full disk the file
// stays as it is, which is logged.
func OpenHighWater(dir string, s State) (*HighWater, error) {
	m, err := ReadMark(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if s.Last > 0 {
			slog.Warn("a store without a high-water mark: taken as it is", "dir", dir, "last", s.Last)
		}
		return newHighWater(dir, Mark{}, s, 1)
	}
	if err != nil {
		return nil, err
	}
	if remade := !m.Created.Equal(s.Created); s.Last < m.Last || remade {
		return nil, &RegressedError{Dir: dir, HighWater: m.Last, Last: s.Last, Remade: remade}
	}
	if missing := m.Missing(s.Last, s.Messages); missing > 0 {
		return nil, &RegressedError{Dir: dir, HighWater: m.Last, Last: s.Last, Missing: missing}
	}
	return newHighWater(dir, m, s, m.Generation)
}

// AcceptLoss takes a regressed store as it is and raises its generation, so that no
// fence given before the loss is taken for one given after it.
func AcceptLoss(dir string, s State) (*HighWater, error) {
	m, err := ReadMark(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return newHighWater(dir, m, s, max(m.Generation, 1)+1)
}

// ReadMark returns what the high-water file of a bus directory says; without a file an
// error wrapping fs.ErrNotExist.
func ReadMark(dir string) (Mark, error) {
	var m Mark
	path := filepath.Join(dir, highWaterFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return m, fmt.Errorf("read high-water mark: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrBadMark, path, err)
	}
	if m.Generation == 0 {
		return m, fmt.Errorf("%w: %s: it names no generation", ErrBadMark, path)
	}
	return m, nil
}

// ErrBadMark means that the high-water file is damaged: what the store once held is not
// known.
var ErrBadMark = errors.New("the high-water mark cannot be read; restore it from a backup, or remove it to take the store as it is")

// newHighWater goes on from before. A disk that is full must not keep a store from being
// read: the mark on it is lower than the truth then, which is no lie.
func newHighWater(dir string, before Mark, s State, generation uint64) (*HighWater, error) {
	h := &HighWater{
		path: filepath.Join(dir, highWaterFile), created: s.Created, gen: generation, logger: slog.Default(),
		saved: before, base: s,
	}
	h.last.Store(uint64(s.Last))
	err := h.save()
	if full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT); full && before.Generation == generation {
		h.logger.Warn("the high-water mark stays behind: the disk is full", "path", h.path)
		return h, nil
	}
	return h, err
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
		if err := h.save(); err != nil {
			h.logger.Error("keep the high-water mark", "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// save replaces the file if it says something else, so that a kill leaves the old or the
// new one.
func (h *HighWater) save() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.saveLocked()
}

func (h *HighWater) saveLocked() error {
	m := Mark{Created: h.created, Last: events.Sequence(h.last.Load()), Generation: h.gen, Purging: h.purges > 0}
	messages := h.base.Messages + uint64(max(m.Last, h.base.Last)-h.base.Last)
	m.Messages = &messages
	if m.same(h.saved) {
		return nil
	}
	if err := writeMark(h.path, m); err != nil {
		return err
	}
	h.saved = m
	return nil
}

// WriteMark gives a bus directory that nobody serves a high-water file.
func WriteMark(dir string, m Mark) error { return writeMark(filepath.Join(dir, highWaterFile), m) }

func writeMark(path string, m Mark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode high-water mark: %w", err)
	}
	if err := replaceFile(path, append(b, '\n')); err != nil {
		return fmt.Errorf("write high-water mark: %w", err)
	}
	return nil
}

func (m Mark) same(o Mark) bool {
	return m.Created.Equal(o.Created) && m.Last == o.Last && m.Generation == o.Generation && m.Purging == o.Purging &&
		o.Messages != nil && *m.Messages == *o.Messages
}

// Purging tells that messages are about to be removed on purpose. It returns when the
// file says so; the removal may begin then. [HighWater.Purged] ends it.
func (h *HighWater) Purging() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purges++
	if h.saved.Purging {
		return nil
	}
	if err := h.saveLocked(); err != nil {
		h.purges--
		return err
	}
	return nil
}

// Purged tells that a removal has ended and how the log is now. The file follows within
// a second.
func (h *HighWater) Purged(s State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purges--
	h.base = s
	h.Note(s.Last)
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
