package storefile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"keryx/events"
)

// Copied says what of a stream was copied.
type Copied struct {
	Stream string `json:"stream"`
	// Messages is how many whole messages were copied, less those that were deleted.
	Messages uint64          `json:"messages"`
	Last     events.Sequence `json:"last"`
}

// Copy copies a stream's description and blocks below another bus directory, record by
// record, up to a sequence; 0 copies all. The store may be open: a record that is being
// written at the very end is left out, any other damage ends the copy with
// [*DamagedError]. A block that the server takes away meanwhile is an error wrapping
// fs.ErrNotExist: begin again.
func Copy(dir, stream, to string, upTo events.Sequence) (Copied, error) {
	c := Copied{Stream: stream}
	indices, err := blocksOf(dir, stream)
	if err != nil {
		return c, err
	}
	if err := os.MkdirAll(msgs(to, stream), 0o700); err != nil {
		return c, fmt.Errorf("copy stream %s: %w", stream, err)
	}
	if err := copyMeta(dir, stream, to); err != nil {
		return c, err
	}
	blocks := make([]*block, 0, len(indices))
	for i, index := range indices {
		b, err := copyBlock(dir, stream, to, index, upTo)
		if err != nil {
			return c, fmt.Errorf("copy stream %s: %w", stream, err)
		}
		if n := len(b.damages); n > 0 && (i < len(indices)-1 || !b.torn || n > 1) {
			d := b.damages[0]
			d.Stream, d.File = stream, filepath.ToSlash(filepath.Join(streamsDir, stream, msgsDir, blockName(index)))
			return c, &DamagedError{Dir: dir, Damages: []Damage{d}}
		}
		b.damages = nil
		blocks = append(blocks, b)
	}
	r := Report{Stream: stream}
	r.add(dir, blocks)
	c.Messages, c.Last = r.Messages, r.Last
	return c, nil
}

func copyMeta(dir, stream, to string) error {
	r := Report{Stream: stream}
	if err := r.checkMeta(dir); err != nil {
		return err
	}
	if len(r.Damages) > 0 {
		return &DamagedError{Dir: dir, Damages: r.Damages}
	}
	for _, name := range []string{metaFile, metaSum} {
		rel := filepath.Join(filepath.FromSlash(streamsDir), stream, name)
		b, err := os.ReadFile(filepath.Join(dir, rel))
		if err != nil {
			return fmt.Errorf("copy description of stream %s: %w", stream, err)
		}
		if err := writeSynced(filepath.Join(to, rel), b); err != nil {
			return fmt.Errorf("copy description of stream %s: %w", stream, err)
		}
	}
	return nil
}

// copyBlock returns what it copied: the account of a block is that of the copy.
func copyBlock(dir, stream, to string, index int, upTo events.Sequence) (*block, error) {
	buf, err := os.ReadFile(filepath.Join(msgs(dir, stream), blockName(index)))
	if err != nil {
		return nil, err
	}
	b, err := newBlock(stream, index, buf)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = b.walk(func(r record) error {
		if upTo != 0 && r.sequence > upTo {
			return nil
		}
		_, err := out.Write(buf[r.offset : r.offset+r.size])
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := writeSynced(filepath.Join(msgs(to, stream), blockName(index)), out.Bytes()); err != nil {
		return nil, err
	}
	copied, err := newBlock(stream, index, out.Bytes())
	if err != nil {
		return nil, err
	}
	damages, torn := b.damages, b.torn
	err = copied.walk(func(record) error { return nil })
	copied.damages, copied.torn, copied.buf = damages, torn, nil
	return copied, err
}
