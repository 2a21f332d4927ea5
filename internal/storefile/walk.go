package storefile

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Message is a whole message of a block. It is valid until the function that it was given
// to returns.
type Message struct {
	Subject  string
	Sequence events.Sequence
	Time     time.Time
	Header   nats.Header // as it was published, the server's own headers included
	Data     []byte
}

// Walk calls fn with every whole message of a stream that no tombstone deletes, in order,
// and stops at its first error. Damage is passed over; [Scan] tells of it.
func Walk(dir, stream string, fn func(Message) error) error {
	indices, err := blocksOf(dir, stream)
	if err != nil {
		return err
	}
	deleted := make(map[events.Sequence]bool)
	for _, index := range indices { // a tombstone stands behind what it deletes
		b, err := readBlock(stream, filepath.Join(msgs(dir, stream), blockName(index)), index)
		if err != nil {
			return err
		}
		for _, s := range b.tombs {
			deleted[s] = true
		}
	}
	for _, index := range indices {
		if err := walkBlock(dir, stream, index, deleted, fn); err != nil {
			return fmt.Errorf("read block %d of stream %s: %w", index, stream, err)
		}
	}
	return nil
}

func walkBlock(dir, stream string, index int, deleted map[events.Sequence]bool, fn func(Message) error) error {
	buf, err := os.ReadFile(filepath.Join(msgs(dir, stream), blockName(index)))
	if err != nil {
		return err
	}
	b, err := newBlock(stream, index, buf)
	if err != nil {
		return err
	}
	return b.walk(func(r record) error {
		if r.tomb || r.erased || deleted[r.sequence] {
			return nil
		}
		m, err := messageOf(buf[r.offset : r.offset+r.size])
		if err != nil {
			return fmt.Errorf("decode sequence %s: %w", r.sequence, err)
		}
		return fn(m)
	})
}

func messageOf(rec []byte) (Message, error) {
	subject := int(binary.LittleEndian.Uint16(rec[20:]))
	m := Message{
		Subject:  string(rec[headSize : headSize+subject]),
		Sequence: events.Sequence(binary.LittleEndian.Uint64(rec[4:])),
		Time:     time.Unix(0, int64(binary.LittleEndian.Uint64(rec[12:]))).UTC(), //nolint:gosec // the server wrote it of an int64
	}
	body := rec[headSize+subject : len(rec)-hashSize]
	if binary.LittleEndian.Uint32(rec)&headersBit == 0 {
		m.Data = body
		return m, nil
	}
	length := binary.LittleEndian.Uint32(body)
	if int(length) > len(body)-4 {
		return m, fmt.Errorf("headers of %d bytes in %d", length, len(body)-4)
	}
	var err error
	if m.Header, err = nats.DecodeHeadersMsg(body[4 : 4+length]); err != nil {
		return m, err
	}
	m.Data = body[4+length:]
	return m, nil
}
