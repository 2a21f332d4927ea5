package storefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"os"

	"github.com/minio/highwayhash"

	"keryx/events"
)

// The form of a record (nats-server 2.15.3, filestore.go): length with a bit for
// headers, sequence with a bit each for erased and tombstone, time, length of the
// subject; subject, headers and data; hash.
const (
	headSize   = 4 + 8 + 8 + 2
	hashSize   = 8
	headersBit = 1 << 31
	erasedBit  = 1 << 63
	tombBit    = 1 << 62
	// maxRecord is the longest record the server takes for one, 32 MiB.
	maxRecord = 32 << 20
)

// record is one record of a block.
type record struct {
	offset, size int
	sequence     events.Sequence
	erased, tomb bool
}

// block is what a block file holds.
type block struct {
	index   int
	size    int64
	records uint64
	held    ranges // sequences of records that are messages
	tombs   []events.Sequence
	gone    ranges // sequences whose records say that they were erased
	last    events.Sequence
	damages []Damage
	torn    bool // the last of damages begins a record that ends with the file
	buf     []byte
	hash    hash.Hash64
}

// readBlock reads and checks a block file.
func readBlock(stream, path string, index int) (*block, error) {
	buf, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read block: %w", err)
	}
	b, err := newBlock(stream, index, buf)
	if err != nil {
		return nil, err
	}
	return b, b.walk(func(record) error { return nil })
}

func newBlock(stream string, index int, buf []byte) (*block, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, index))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		return nil, fmt.Errorf("make hash of block %d: %w", index, err)
	}
	return &block{index: index, size: int64(len(buf)), buf: buf, hash: h}, nil
}

// walk calls fn for every whole record, and notes where one is damaged. Behind damage it
// goes on at the next place at which a whole record begins.
func (b *block) walk(fn func(record) error) error {
	for at := 0; at < len(b.buf); {
		r, kind, err := b.recordAt(at)
		if err != nil {
			return err
		}
		if kind == "" {
			b.take(r)
			if err := fn(r); err != nil {
				return err
			}
			at += r.size
			continue
		}
		next, err := b.resume(at)
		if err != nil {
			return err
		}
		b.damages = append(b.damages, Damage{Kind: kind, Offset: int64(at), Bytes: int64(next - at), After: b.last})
		b.torn = kind == KindTruncated && next == len(b.buf)
		at = next
	}
	return nil
}

// take accounts for a whole record.
func (b *block) take(r record) {
	b.records++
	switch {
	case r.tomb:
		b.tombs = append(b.tombs, r.sequence)
	case r.erased:
		b.gone.add(r.sequence)
		b.last = max(b.last, r.sequence)
	case r.sequence > b.last: // the server passes over what does not move up
		b.held.add(r.sequence)
		b.last = r.sequence
	}
}

// recordAt reads the record at an offset. kind is what is wrong with it.
func (b *block) recordAt(at int) (r record, kind Kind, err error) {
	rest := b.buf[at:]
	if len(rest) < headSize {
		return record{}, KindTruncated, nil
	}
	size := binary.LittleEndian.Uint32(rest)
	headers := size&headersBit != 0
	length := int(size &^ headersBit)
	subject := int(binary.LittleEndian.Uint16(rest[20:]))
	least := headSize + subject + hashSize
	if headers {
		least += 4
	}
	switch {
	case length < least || length > maxRecord:
		return record{}, KindMalformed, nil
	case length > len(rest):
		return record{}, KindTruncated, nil
	}
	ok, err := b.hashed(rest[:length], subject, headers)
	if err != nil || !ok {
		return record{}, KindChecksum, err
	}
	seq := binary.LittleEndian.Uint64(rest[4:])
	return record{
		offset: at, size: length, sequence: events.Sequence(seq &^ (erasedBit | tombBit)),
		erased: seq&erasedBit != 0 || seq == 0, tomb: seq&tombBit != 0,
	}, "", nil
}

// hashed reports whether a record has the hash it says.
func (b *block) hashed(rec []byte, subject int, headers bool) (bool, error) {
	b.hash.Reset()
	body := headSize + subject
	if headers {
		body += 4
	}
	end := len(rec) - hashSize
	var sum [hashSize]byte
	for _, part := range [][]byte{rec[4:20], rec[headSize : headSize+subject], rec[body:end]} {
		if _, err := b.hash.Write(part); err != nil {
			return false, fmt.Errorf("hash a record: %w", err)
		}
	}
	return bytes.Equal(b.hash.Sum(sum[:0]), rec[end:]), nil
}

// resume finds where a whole record begins behind a damaged one.
func (b *block) resume(at int) (int, error) {
	for next := at + 1; next+headSize+hashSize <= len(b.buf); next++ {
		_, kind, err := b.recordAt(next)
		if err != nil {
			return 0, err
		}
		if kind == "" {
			return next, nil
		}
	}
	return len(b.buf), nil
}
