package storefile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"
	"golang.org/x/sync/errgroup"

	"keryx/events"
)

// Files of the server below a bus directory.
const (
	streamsDir = "store/jetstream/$G/streams"
	msgsDir    = "msgs"
	indexFile  = "index.db"
	metaFile   = "meta.inf"
	metaSum    = "meta.sum"
	blockExt   = ".blk"
)

// Kind is a way in which a store is damaged.
type Kind string

// The kinds of damage.
const (
	KindChecksum  Kind = "checksum"  // a record is not what was written
	KindMalformed Kind = "malformed" // no record begins where one has to
	KindTruncated Kind = "truncated" // a record ends before its end
	KindMeta      Kind = "meta"      // the stream's own description is not what was written
	KindOverlap   Kind = "overlap"   // a block begins before the end of the one before it
)

// Damage is one place of a stream's files that does not hold what was written there.
type Damage struct {
	Stream string `json:"stream"`
	// File is relative to the bus directory.
	File   string `json:"file"`
	Kind   Kind   `json:"kind"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	// After is the sequence of the last whole message before it in its block; 0 for none.
	After events.Sequence `json:"after"`
}

// String says where and what.
func (d Damage) String() string {
	if d.Kind == KindMeta {
		return fmt.Sprintf("stream %s: %s does not match its checksum", d.Stream, d.File)
	}
	return fmt.Sprintf("stream %s: %s, %d bytes from offset %d, behind sequence %d (%s)", d.Stream, d.File, d.Bytes, d.Offset, d.After, d.Kind)
}

// Report is what a stream's files hold.
type Report struct {
	Stream string `json:"stream"`
	// Exists is false for a stream without a directory; all else is zero then.
	Exists bool  `json:"exists"`
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
	// Messages is how many whole messages are there that were not deleted.
	Messages uint64 `json:"messages"`
	// Last is the highest sequence that a whole record names, tombstones included.
	Last events.Sequence `json:"last"`
	// Missing are sequences between the first and the last without a record: compacted
	// after a deletion, or lost.
	Missing []Range `json:"missing,omitempty"`
	// Damages are in the order of the files.
	Damages []Damage `json:"damages,omitempty"`
	// Torn is a record that a kill left half-written at the very end; nil for none.
	Torn *Damage `json:"torn,omitempty"`
	// Index reports whether the server's index is there; without it the server reads
	// the blocks.
	Index bool `json:"index"`
}

// Streams returns the names of the streams that a bus directory has files of.
func Streams(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(streamsDir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Scan reads and checks all files of a stream of a bus directory. Nothing may have the
// store open.
func Scan(ctx context.Context, dir, stream string) (Report, error) {
	r := Report{Stream: stream}
	indices, err := blocksOf(dir, stream)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.Exists = true
	if _, err := os.Stat(filepath.Join(msgs(dir, stream), indexFile)); err == nil {
		r.Index = true
	}
	if err := r.checkMeta(dir); err != nil {
		return r, err
	}
	blocks := make([]*block, len(indices))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, index := range indices {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b, err := readBlock(stream, filepath.Join(msgs(dir, stream), blockName(index)), index)
			if err != nil {
				return err
			}
			b.buf, blocks[i] = nil, b
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return r, fmt.Errorf("scan stream %s: %w", stream, err)
	}
	r.add(dir, blocks)
	return r, nil
}

// add accounts for the blocks, in order.
func (r *Report) add(dir string, blocks []*block) {
	var held, seen ranges
	var tombs []events.Sequence
	for i, b := range blocks {
		r.Blocks++
		r.Bytes += b.size
		file := r.file(dir, blockName(b.index))
		for n, d := range b.damages {
			d.Stream, d.File = r.Stream, file
			if b.torn && n == len(b.damages)-1 && i == len(blocks)-1 {
				r.Torn = &d
				continue
			}
			r.Damages = append(r.Damages, d)
		}
		if first := b.first(); first != 0 && len(seen) > 0 && first <= seen[len(seen)-1].To {
			r.Damages = append(r.Damages, Damage{Stream: r.Stream, File: file, Kind: KindOverlap, After: seen[len(seen)-1].To})
			continue
		}
		held.join(b.held)
		seen.join(b.seen())
		tombs = append(tombs, b.tombs...)
		r.Last = max(r.Last, b.last)
	}
	r.count(held, seen, tombs)
}

func (r *Report) count(held, seen ranges, tombs []events.Sequence) {
	slices.Sort(tombs)
	tombs = slices.Compact(tombs)
	r.Messages = held.count()
	var deleted ranges
	for _, s := range tombs {
		r.Last = max(r.Last, s)
		if held.has(s) {
			r.Messages--
		}
		deleted.add(s)
	}
	for _, gap := range seen.between() {
		r.Missing = append(r.Missing, without(gap, deleted)...)
	}
}

// without returns what of a range is not in others.
func without(r Range, others ranges) ranges {
	out := ranges{}
	for s := r.From; s <= r.To; s++ {
		if !others.has(s) {
			out.add(s)
		}
	}
	return out
}

// seen are the sequences of messages and erased records, ascending.
func (b *block) seen() ranges {
	all := append(slices.Clone(b.held), b.gone...)
	slices.SortFunc(all, func(x, y Range) int { return int(x.From) - int(y.From) }) //nolint:gosec // no stream has 2^63 messages
	var out ranges
	for _, r := range all {
		if n := len(out); n > 0 && r.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, r.To)
			continue
		}
		out = append(out, r)
	}
	return out
}

func (b *block) first() events.Sequence {
	if s := b.seen(); len(s) > 0 {
		return s[0].From
	}
	return 0
}

// checkMeta compares the stream's description with its checksum, as the server does.
func (r *Report) checkMeta(dir string) error {
	at := filepath.Join(dir, filepath.FromSlash(streamsDir), r.Stream)
	meta, err := os.ReadFile(filepath.Join(at, metaFile))
	sum, serr := os.ReadFile(filepath.Join(at, metaSum))
	if err := errors.Join(err, serr); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read description of stream %s: %w", r.Stream, err)
	}
	want, herr := metaHash(r.Stream, meta)
	if herr != nil {
		return herr
	}
	if err != nil || serr != nil || want != string(sum) {
		r.Damages = append(r.Damages, Damage{Stream: r.Stream, File: filepath.ToSlash(filepath.Join(streamsDir, r.Stream, metaFile)), Kind: KindMeta})
	}
	return nil
}

func metaHash(stream string, meta []byte) (string, error) {
	key := sha256.Sum256([]byte(stream))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		return "", fmt.Errorf("make hash of a description: %w", err)
	}
	if _, err := h.Write(meta); err != nil {
		return "", fmt.Errorf("hash a description: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (r *Report) file(dir, name string) string {
	rel, err := filepath.Rel(dir, filepath.Join(msgs(dir, r.Stream), name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// StreamDir returns a stream's directory relative to the bus directory, with slashes.
func StreamDir(stream string) string { return streamsDir + "/" + stream }

func msgs(dir, stream string) string {
	return filepath.Join(dir, filepath.FromSlash(streamsDir), stream, msgsDir)
}

func blockName(index int) string { return strconv.Itoa(index) + blockExt }

// blocksOf returns the numbers of a stream's blocks, ascending.
func blocksOf(dir, stream string) ([]int, error) {
	entries, err := os.ReadDir(msgs(dir, stream))
	if err != nil {
		return nil, fmt.Errorf("list blocks: %w", err)
	}
	var out []int
	for _, e := range entries {
		text, ok := strings.CutSuffix(e.Name(), blockExt)
		if n, err := strconv.Atoi(text); ok && err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}
