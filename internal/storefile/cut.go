package storefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// keptDir holds, below the bus directory, files as they were before they were cut.
const keptDir = "damaged"

// Cut takes the damaged parts out of a stream's blocks and removes its index, so that the
// server reads the blocks. Every block is kept as it was below DIR/damaged first; the
// paths of the copies are returned. Nothing may have the store open. A kill leaves each
// block as it was or cut.
func Cut(dir string, r Report, now time.Time) ([]string, error) {
	var kept []string
	done := make(map[string]bool)
	for _, d := range r.Damages {
		if done[d.File] {
			continue
		}
		done[d.File] = true
		if d.Kind == KindMeta {
			if err := seal(dir, r.Stream); err != nil {
				return kept, err
			}
			continue
		}
		to, err := cutFile(dir, r.Stream, d, now)
		if err != nil {
			return kept, fmt.Errorf("cut %s: %w", d.File, err)
		}
		kept = append(kept, to)
	}
	return kept, DropIndex(dir, r.Stream)
}

// DropIndex removes a stream's index; the server makes it again from the blocks.
func DropIndex(dir, stream string) error {
	err := os.Remove(filepath.Join(msgs(dir, stream), indexFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove index of stream %s: %w", stream, err)
	}
	return nil
}

// SetAside moves a stream's files below DIR/damaged, so that the server makes it anew.
// It is for streams that are projections.
func SetAside(dir, stream string, now time.Time) (string, error) {
	to, err := keepPath(dir, stream, "", now)
	if err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(dir, filepath.FromSlash(streamsDir), stream), to); err != nil {
		return "", fmt.Errorf("set stream %s aside: %w", stream, err)
	}
	return to, nil
}

// seal gives a stream's description a new checksum, if it can be read: what differs from
// what the bus needs is repaired at the start.
func seal(dir, stream string) error {
	at := filepath.Join(dir, filepath.FromSlash(streamsDir), stream)
	meta, err := os.ReadFile(filepath.Join(at, metaFile))
	if err != nil {
		return fmt.Errorf("read description of stream %s, which only a backup has now: %w", stream, err)
	}
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(meta, &named); err != nil || named.Name != stream {
		return fmt.Errorf("%w: stream %s", ErrNoDescription, stream)
	}
	sum, err := metaHash(stream, meta)
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(at, metaSum), []byte(sum))
}

// ErrNoDescription means that a stream's own description cannot be read any more, so that
// only a backup helps.
var ErrNoDescription = errors.New("the description of a stream is damaged beyond reading; restore a backup")

func keepPath(dir, stream, name string, now time.Time) (string, error) {
	at := filepath.Join(dir, keptDir)
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", fmt.Errorf("make %s: %w", at, err)
	}
	text := now.UTC().Format("20060102T150405.000000000") + "-" + stream
	if name != "" {
		text += "-" + name
	}
	return filepath.Join(at, text), nil
}

// cutFile writes a block anew with its whole records only.
func cutFile(dir, stream string, d Damage, now time.Time) (string, error) {
	path := filepath.Join(dir, filepath.FromSlash(d.File))
	buf, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	to, err := keepPath(dir, stream, filepath.Base(path), now)
	if err != nil {
		return "", err
	}
	if err := writeSynced(to, buf); err != nil {
		return "", err
	}
	whole := bytes.NewBuffer(nil)
	if d.Kind != KindOverlap { // whose every record is elsewhere, or was never answered
		if err := wholeOf(stream, path, buf, whole); err != nil {
			return "", err
		}
	}
	if err := writeSynced(path+".cut", whole.Bytes()); err != nil {
		return "", err
	}
	return to, os.Rename(path+".cut", path)
}

func wholeOf(stream, path string, buf []byte, to *bytes.Buffer) error {
	var index int
	if _, err := fmt.Sscanf(filepath.Base(path), "%d", &index); err != nil {
		return fmt.Errorf("read number of block %s: %w", path, err)
	}
	b, err := newBlock(stream, index, buf)
	if err != nil {
		return err
	}
	return b.walk(func(r record) error {
		_, err := to.Write(buf[r.offset : r.offset+r.size])
		return err
	})
}

// Write writes a whole file of mode 0600 to the disk.
func Write(path string, b []byte) error {
	if err := writeSynced(path, b); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(b)
	return errors.Join(werr, f.Sync(), f.Close())
}
