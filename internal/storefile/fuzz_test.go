package storefile_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"keryx/internal/storefile"
)

const stream = "store/jetstream/$G/streams/KX_LOG"

// FuzzABlockIsScannedAndCutWhateverItHolds: of any bytes, what is left after a cut is whole,
// and nothing is counted that was not counted before.
func FuzzABlockIsScannedAndCutWhateverItHolds(f *testing.F) {
	real, err := os.ReadFile("testdata/1.blk") // a real one, of nats-server 2.15.3
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real)
	f.Add(real[:len(real)-1])
	f.Add(append(append([]byte{}, real...), real[:20]...))
	f.Add([]byte{})
	flipped := append([]byte{}, real...)
	flipped[len(flipped)/2] ^= 1
	f.Add(flipped)
	f.Fuzz(func(t *testing.T, block []byte) {
		dir := t.TempDir()
		at := filepath.Join(dir, filepath.FromSlash(stream), "msgs")
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "1.blk"), block, 0o600); err != nil {
			t.Fatal(err)
		}
		before := scan(t, dir)
		inBlock := before
		inBlock.Damages = nil
		for _, d := range before.Damages {
			if d.Kind != storefile.KindMeta { // there is no description here
				inBlock.Damages = append(inBlock.Damages, d)
			}
		}
		if _, err := storefile.Cut(dir, inBlock, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		after := scan(t, dir)
		if after.Messages != before.Messages || after.Last != before.Last {
			t.Errorf("%d messages up to %d after the cut, %d up to %d before", after.Messages, after.Last, before.Messages, before.Last)
		}
		for _, d := range after.Damages {
			if d.Kind != storefile.KindMeta && d.Kind != storefile.KindOverlap {
				t.Errorf("still damaged: %s", d)
			}
		}
	})
}

func scan(t *testing.T, dir string) storefile.Report {
	t.Helper()
	r, err := storefile.Scan(t.Context(), dir, "KX_LOG")
	if err != nil {
		t.Fatal(err)
	}
	return r
}
